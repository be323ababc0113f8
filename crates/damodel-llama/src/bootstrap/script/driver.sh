# shellcheck shell=sh
# ---- The driver of the GPUs, whose folders a login may not know ----

# of_the_container NAME: a variable of the container's first process, whose environment a login does not get.
of_the_container() {
    { tr '\0' '\n' </proc/1/environ | sed -n "s/^$1=//p" | head -n 1; } 2>/dev/null
}

# find_driver: adds to $PATH, and sets the folders of the driver's libraries: those of the container, and those in which
# its runtime puts the driver.
find_driver() {
    driver_path=$(of_the_container PATH) driver_libraries=$(of_the_container LD_LIBRARY_PATH)
    export PATH="$PATH${driver_path:+:$driver_path}:/usr/local/nvidia/bin"
    export DAMODEL_DRIVER_LIBRARIES="${driver_libraries:+$driver_libraries:}/usr/local/nvidia/lib64"
}

# with_driver COMMAND...: with the driver's libraries behind those of the login.
with_driver() {
    LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$DAMODEL_DRIVER_LIBRARIES "$@"
}
