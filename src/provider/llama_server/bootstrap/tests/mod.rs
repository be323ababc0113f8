//! The program, run by real shells in homes of their own: real processes, real compiles, real sockets. The server, the
//! GPU and its compiler are the sandbox's stand-ins.

mod apply;
mod boxes;
mod compile;
#[path = "../../../../../tests/it/support/damage.rs"]
mod damage;
#[cfg(feature = "sandbox")]
mod download;
mod home;
mod model;
mod observe;
mod pauses;
#[path = "../../../../../tests/it/support/ports.rs"]
mod ports;
mod real;
mod refusals;
mod replace;
mod secrets;
mod serve;
mod stand_in;
mod stop;
mod survive;
mod text;
mod update;
