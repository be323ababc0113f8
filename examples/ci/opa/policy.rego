# Judges a plan of Terraform or OpenTofu, as `show -json` writes it, by the limits in data.json. The rules are named
# after those of `terraform-provider-damodel review`.
package damodel

limits := data.damodel_limits

# The hours of a period. The service has no weekly price.
hours := {"Daily": 24, "Hourly": 1, "Monthly": 730}

deny contains "policy: the limits are missing, or a name or a value in them is unknown" if not has_limits
deny contains "plan: it is not the output of `show -json` for a saved plan" if not is_plan
deny contains "plan: it is errored" if object.get(input, "errored", false) != false
deny contains "plan: it is incomplete, as with -target" if object.get(input, "complete", true) != true

deny contains sprintf("plan: the change of %v is unreadable", [object.get(entry, "address", index)]) if {
	some index, entry in input.resource_changes
	not is_foreign(entry)
	not is_readable(entry)
}

deny contains sprintf("max-monthly-increase: %s: its price is unknown", [instance.address]) if {
	limits.max_monthly_increase
	some instance in instances
	not increase(instance.change)
}

deny contains sprintf("max-monthly-increase: increases of %v a month, limit %v", [round(total * 100) / 100, most]) if {
	most := limits.max_monthly_increase
	total := sum([increase(instance.change) | some instance in instances])

	# Products of decimal fractions are not exact.
	round(total * 1000000) > round(most * 1000000)
}

deny contains sprintf("destroy-data: %s: it is destroyed", [resource.address]) if {
	"destroy-data" in limits.deny
	some resource in managed
	resource.type in {"damodel_cloud_disk", "damodel_instance", "damodel_private_image"}
	"delete" in resource.change.actions
}

deny contains sprintf("prepaid: %s: its payment_type is %v", [instance.address, payment_type]) if {
	"prepaid" in limits.deny
	some instance in instances
	"create" in instance.change.actions
	payment_type := value(instance.change, "payment_type")
	not payment_type in {"Hourly", null}
}

deny contains sprintf("no-max-age: %s: it has no known max_age", [instance.address]) if {
	"no-max-age" in limits.deny
	some instance in instances
	instance.change.after != null
	is_touched(instance.change)
	value(instance.change, "payment_type") in {"Hourly", "unknown", null}
	value(instance.change, "max_age") in {"unknown", null}
}

has_limits if {
	object.keys(limits) - {"deny", "max_monthly_increase"} == set()
	is_number(object.get(limits, "max_monthly_increase", 0))
	is_array(object.get(limits, "deny", []))
	{rule | some rule in limits.deny} - {"destroy-data", "no-max-age", "prepaid"} == set()
}

is_plan if {
	regex.match(`^[01]\.`, input.format_version)
	is_object(input.planned_values)
	is_array(object.get(input, "resource_changes", []))
}

is_foreign(entry) if startswith(entry.type, "damodel_") == false

is_readable(entry) if entry.mode in {"data", "ephemeral"}

is_readable(entry) if {
	entry.mode == "managed"
	is_string(entry.address)
	is_array(entry.change.actions)
	every action in entry.change.actions { action in {"create", "delete", "forget", "no-op", "read", "update"} }
}

managed := [entry | some entry in input.resource_changes; entry.mode == "managed"]

instances := [resource | some resource in managed; resource.type == "damodel_instance"]

is_touched(change) if "create" in change.actions
is_touched(change) if "update" in change.actions
is_touched(change) if change.importing != null

# A value after the apply; "unknown" if the apply decides it, or if it is sensitive.
value(change, name) := "unknown" if {
	change.after_unknown[name] == true
} else := object.get(shown(change, "after"), name, null)

# The values of a side, "unknown" in place of each sensitive one.
shown(change, side) := object.union(change[side], {name: "unknown" |
	some name, mark in change[concat("_", [side, "sensitive"])]
	mark == true
	object.get(change[side], name, null) != null
})

# The monthly increase of an instance; undefined if it is unknown.
increase(change) := 0 if {
	change.after == null
} else := max([0, monthly(change, "after") - replaced(change)]) if {
	replaced(change)
} else := 0 if {
	# A price that was unknown before stays what it was.
	not "create" in change.actions
	not monthly(change, "before")
}

# The costs that end. An object that is forgotten is billed beside its replacement.
replaced(change) := 0 if {
	"forget" in change.actions
	monthly(change, "before") >= 0
} else := monthly(change, "before") if {
	not "forget" in change.actions
} else := 0 if not "forget" in change.actions

# The monthly price of a side; undefined if it is unknown or sensitive. Without a quote, the ceiling counts.
monthly(change, side) := ((cost.unit_price + cost.data_disk_price) * 730) / hours[cost.payment_type] if {
	cost := shown(change, side).estimated_cost
	every price in [cost.unit_price, cost.data_disk_price] { is_number(price) }
	cost.unit_price + cost.data_disk_price >= 0
} else := values.price_ceiling * 730 if {
	values := shown(change, side)
	object.get(values, "estimated_cost", null) == null
	is_number(values.price_ceiling)
	values.price_ceiling >= 0
}
