//! A table of attacks on the gate, and the verdict for each.

use super::*;

/// An attack and its verdict.
struct Row {
    name: String,
    /// The plans of one call.
    plans: Vec<Value>,
    /// The policy without its version; empty for no gate.
    policy: String,
    /// The violations as `rule address`, sorted.
    expected: Vec<String>,
}

/// The sorted violations; empty without a gate. All that this file knows of the program that it attacks.
fn judged(plans: &[Value], policy: &str) -> Vec<String> {
    let policy = if policy.is_empty() { Ok(Policy::default()) } else { policy_of(policy) };
    let Ok(policy) = policy else { return vec!["no policy".to_owned()] };
    let mut found = violations(&review_all(&plans.iter().collect::<Vec<_>>(), &policy));
    found.sort();
    found
}

/// Each line is `name | plans | policy | verdict`. A line that begins with spaces,
/// or follows `¦`, continues the one before it; `«x¦y»` makes a row of each choice; `=` is as in the line before.
///
/// Plans stand between `&&`, and their parts between `;`. A change is `actions address words`, also below `drift` or
/// `state`; `.path=value` is of the plan. Words: `1..2` are the prices of an instance or the sizes of a disk,
/// `secret=x..y` is a marked value, `exist=id:flag` a disk of exist_disks, `from=` the previous address, `path=value`
/// is below `change`, `.path=value` of the entry. An address without a dot is an instance's; `disk` and `prod` are
/// disks.
///
/// Parts of a policy: `max N` and `deny RULES` for all objects, or for those of the `rule PATTERNS` before; `except
/// PATTERNS`, with `of RULES` after it; `expired PATTERNS`; else a line of TOML.
const TABLE: &str = r#"
-- Sums: 1 an hour is 730 a month.
an increase above the limit | create a | max 729.99 | max-monthly-increase -
an increase that reaches the limit | create a | max 730 | passes
a dearer one | «update¦delete+create¦create+delete» a 1..2 | max 729 | max-monthly-increase -
a decrease does not pay | create a; delete b 9 | max 100 | max-monthly-increase -
nor does a deposed object | create a; delete b 9 .deposed=1a2b | = | max-monthly-increase -
nor a prepaid term that is given up | create a; delete b 9 before/payment_type=Monthly | = | max-monthly-increase -
nor what is forgotten | create a; forget b 9 | = | max-monthly-increase -
nor an unknown price that ends | delete+create a 1..2 before/estimated_cost=null | max 1459 | max-monthly-increase -
nor a decrease in another plan | create a && delete b 9 | max 100 | max-monthly-increase -
one address in two plans | create a && create a | max 1459 | max-monthly-increase -
what is forgotten costs no more | forget a 9 | max 0 | passes
it is billed beside its replacement | «create+forget¦forget+create» a 2..1 | max 729 | max-monthly-increase -
both billed reach the limit | = | max 730 | passes
a rename without moved | create a; delete b | max 100 | max-monthly-increase -
a rename with moved | no-op a from=b | max 0 | passes
an import | no-op a importing/id=i | max 0 | passes
a ceiling counts | create a after/estimated_cost=null after/price_ceiling=2.5 | max 1824.99 | max-monthly-increase -
a ceiling reaches the limit
  | create a after/estimated_cost=null after/price_ceiling=2.5 after_unknown/estimated_cost=true | max 1825 | passes
a part has a limit | create module.prod["eu"].damodel_instance.a | rule module.prod.**; max 0 | max-monthly-increase -
another part has none | create a | = | passes
the whole and a part | create a | max 1; rule **; max 0 | max-monthly-increase -, max-monthly-increase -
a stated instance | state no-op a 9 | max 0 | passes
a data source with a price | read data.damodel_instance.a after/estimated_cost/unit_price=9 | max 0 | passes
-- Prices that the plan makes unknown.
a quote that is unknown | create a after/estimated_cost«=null¦/unit_price=null¦/unit_price=free¦/unit_price=-9¦
/unit_price=1e999999999¦/data_disk_price=null¦/payment_type=Weekly¦/payment_type=Yearly¦/payment_type=null»
  | max 1000000 | max-monthly-increase a
a quote that is masked | create a after/estimated_cost/unit_price=null «after_unknown/estimated_cost¦
after_unknown/estimated_cost/unit_price¦after_sensitive/estimated_cost¦after_sensitive/estimated_cost/data_disk_price¦
after_sensitive»=true | = | max-monthly-increase a
a ceiling below 0 | create a after/estimated_cost=null after/price_ceiling=-1 | max 1825 | max-monthly-increase a
a ceiling beside an odd quote | create a -1 after/price_ceiling=1 | = | max-monthly-increase a
a known price becomes unknown | update a after/estimated_cost=null | max 100 | max-monthly-increase a
an unknown price is replaced | «delete+create¦create+forget» a before/estimated_cost=null after/estimated_cost=null | =
  | max-monthly-increase a
an unknown price stays | no-op a before/estimated_cost=null after/estimated_cost=null «¦importing/id=i» | max 0 | passes
an unknown price without a limit | create a after/estimated_cost=null | deny destroy-data | passes
an unknown price outside of a rule | = | rule module.prod.**; max 0 | passes
an instance whose change is unreadable | state no-op a; odd a | max 100 | max-monthly-increase a, plan -
-- Plans that are not whole.
it is marked so | .«errored=true¦complete=false¦deferred_changes=[{}]¦deferred_action_invocations=[{}]» | deny prepaid
  | plan -
it is marked so | = | no gate | passes
a part is unreadable | .«errored="yes"¦complete="no"¦resource_changes={"a":1}¦resource_changes=[1]¦resource_drift=[1]¦
deferred_changes=true¦action_invocations=[{"address":"action.a.b","type":"a"}]¦output_changes=[]¦
output_changes={"a":{"actions":1}}¦checks=7¦checks=[{"status":"odd"}]¦prior_state="x"¦
prior_state={"values":{"root_module":{"resources":[{"address":"a.b"}]}}}» | «no gate¦empty¦deny prepaid¦except **»
  | plan -
a change is unreadable | update a «before=x¦before=7¦before=[1]¦after=x¦after=7¦after=[1]¦importing=x¦importing=7¦
importing=[1]¦replace_paths=x¦replace_paths=[1]¦actions=x¦actions=[1]¦actions=["create","update"]¦after_unknown=all¦
after_sensitive=all¦before_sensitive=7¦.mode=x¦.mode=7¦.address=7¦.type=7¦.type=null¦.previous_address=7¦.deposed=7¦
.action_reason=7¦.change=7» | «no gate¦deny prepaid» | plan -
a foreign action that is unknown | odd aws_instance.a | deny prepaid | passes
a foreign mode that is unknown | no-op aws_instance.a .mode=list | = | passes
a foreign mask that is unreadable | no-op aws_instance.a after_sensitive=7 | = | plan -
an ephemeral resource is opened | open damodel_access.a .mode=ephemeral; drift open damodel_access.a .mode=ephemeral
  | max 0; deny destroy-data,unpriced,prepaid,secrets-in-state | passes
an entry like an ephemeral one | «delete damodel_access.a .mode=ephemeral¦open damodel_access.a» | no gate | plan -
only the second plan is errored | nothing && .errored=true | deny prepaid | plan -
an errored plan and exceptions | .errored=true | «except **¦deny prepaid; except **» | plan -
an errored plan and no limit | .errored=true | «empty¦rule **» | plan -
a whole plan and no limit | delete a | empty | passes
`complete` is missing | .complete=null; no-op b | deny prepaid | passes
`complete` and an object are missing | .complete=null; no-op b; state no-op a | = | plan -
only the object is missing | no-op b; state no-op a | = | passes
only the object, under another address | .complete=null; no-op b from=a; state no-op a | = | passes
only a data source | .complete=null; no-op b; state no-op data.damodel_specs.a | = | passes
a plan without changes | .complete=null; state no-op a | = | passes
-- Data.
an instance goes | «delete¦delete+create¦create+delete» a | deny destroy-data | destroy-data a
an instance stays | «forget¦forget+create¦create+forget¦update¦no-op¦create» a | = | passes
a deposed one goes | delete a .deposed=1a2b | = | destroy-data a (deposed 1a2b)
a cloud disk goes | «delete¦delete+create» disk | = | destroy-data disk
an image goes | delete damodel_private_image.i | = | destroy-data damodel_private_image.i
a type that is unknown goes | delete damodel_future.x | = | destroy-data damodel_future.x
a type without data goes | delete damodel_llama_server.s | = | passes
a mirror's disk goes | delete disk .provider_name=mirror.example.com/team/gpu | = | destroy-data disk
a foreign object goes | delete «aws_s3_bucket¦random_password¦null_resource».x «¦.provider_name=x/damodel/damodel» | =
  | passes
a data source goes | delete data.damodel_cloud_disk.d | = | passes
it went outside of plans | drift delete a | = | passes
it goes in the second plan | nothing && delete a | = | destroy-data a
all of it is hidden | delete a before_sensitive=true | = | destroy-data a
-- Disks of prod that go with an instance elsewhere, in one plan or in two.
exist_disks | «delete¦delete+create» a exist=7:«true¦1» «;¦&&» no-op prod | rule module.prod.**; deny destroy-data
  | destroy-data a
exist_disks that are hidden | delete a exist=7:false before_sensitive«¦/exist_disks»=true «;¦&&» no-op prod | =
  | destroy-data a
exist_disks that stay | «delete a exist=7:false¦create+forget a exist=7:true» «;¦&&» no-op prod | = | passes
exist_disks of another number | delete a exist=8:true «;¦&&» no-op prod | = | passes
cloud_disks | delete a before/reported/cloud_disks=["{\"«id¦disk_id»\":7,\"release_with_instance\":«true¦1»}"] «;¦&&» no-op prod
  | = | destroy-data a
cloud_disks that are hidden | delete a before/reported/cloud_disks=["{\"id\":7,\"release_with_instance\":false}"]
  before_sensitive/reported/cloud_disks=true «;¦&&» no-op prod | = | destroy-data a
cloud_disks that stay | delete a before/reported/cloud_disks=["«7¦x¦{\"id\":7}»"] «;¦&&» no-op prod | = | passes
the disk is bound | delete a; no-op prod before/release_with_instance=«true¦1» before/binding_instances=["«ins-1¦
{\"instance\":{\"uid\":\"ins-1\"}}¦[\"x\",\"ins-1\"]»"] | = | destroy-data a
the disk is bound and hidden
  | delete a; no-op prod before_sensitive=true before/release_with_instance=false before/binding_instances=["ins-1"] | =
  | destroy-data a
the disk is bound to another
  | delete a; no-op prod before/release_with_instance=true before/binding_instances=["ins-12"] | = | passes
the disk is bound and stays | delete a; no-op prod before/release_with_instance=false before/binding_instances=["ins-1"]
  | = | passes
the disk is bound in another plan
  | delete a && no-op prod before/release_with_instance=true before/binding_instances=["ins-1"] | = | passes
the sources disagree
  | delete a exist=7:false; no-op prod before/release_with_instance=true before/binding_instances=["ins-1"] | =
  | destroy-data a
the disk moved or is only stated | delete a exist=7:true «;¦&&» «no-op disk from=prod¦state no-op prod» | =
  | destroy-data a
a disk that goes is another plan's too | delete disk && «no-op disk from=prod¦state no-op prod» | = | destroy-data disk
an exception for the instance alone | delete a exist=7:true «;¦&&» no-op disk | deny destroy-data; except a
  | destroy-data a
an exception for both | = | deny destroy-data; except a,disk | passes
-- Prepaid terms.
a term is bought | create a after/payment_type=«Daily¦Weekly¦Monthly¦Yearly¦hourly¦7» | deny prepaid | prepaid a
a payment that is unknown | create a after/payment_type=null after_unknown/payment_type=true | = | prepaid a
a payment that is hidden | create a after_sensitive/payment_type=true | = | prepaid a
an hourly one is bought | create a after/payment_type=«Hourly¦null» | = | passes
a prepaid one is replaced | «delete+create¦create+forget» a after/payment_type=Monthly | = | prepaid a
a prepaid one stays
  | «update¦no-op¦delete¦forget» a before/payment_type=Monthly after/payment_type=Monthly «¦importing/id=i» | = | passes
an hourly one becomes prepaid in place | update a after/payment_type=Monthly | = | passes
a prepaid one becomes hourly | delete+create a before/payment_type=Monthly | = | passes
-- Objects without a price.
a disk is created | «create¦delete+create¦forget+create» disk 30 | deny unpriced | unpriced disk
a disk grows | update disk 30..60 «¦after_sensitive/size_gb=true¦before_sensitive=true» | = | unpriced disk
a disk may grow | update disk 30 «after_unknown/size_gb=true¦after/size_gb=x¦before/size_gb=null» | = | unpriced disk
a disk does not grow | update disk «30¦60..30» «¦after_sensitive/size_gb=true» | = | passes
a disk is imported | no-op disk 30 importing/id=7 | = | passes
new disks | «create¦create+delete» a after/new_disks=«[{"size_gb":9}]¦null after_unknown/new_disks=true» | =
  | unpriced a
no new disks | «create a after/new_disks=[]¦create a¦update a after/new_disks=[{"size_gb":9}]» | = | passes
an image is created | «create¦delete+create» damodel_private_image.i | = | unpriced damodel_private_image.i
an image is changed | update damodel_private_image.i 1..2 | = | passes
-- Secrets in the state.
a secret enters | «create a secret=null..new¦create a secret=null..null after_unknown/password=true¦update a
  secret=old..new¦update a secret=old..old after_unknown/password=true¦delete+create a secret=old..old¦no-op a
  secret=old..old importing/id=i¦no-op a secret=new..new; drift update a secret=null..new¦drift update a
  secret=old..new» | deny secrets-in-state | secrets-in-state a
no secret enters | «create a secret=null..null¦update a secret=old..old¦update a secret=old..null¦delete a
  secret=old..x¦no-op a secret=old..old¦no-op a secret=old..old from=b¦drift update a secret=old..old¦drift update a
  secret=old..null¦state no-op a secret=old..old¦delete a secret=old..x .deposed=1a2b» | = | passes
a foreign secret enters | create random_password.p secret=null..new | = | secrets-in-state random_password.p
a foreign secret of an unknown action | odd random_password.p secret=null..new | = | secrets-in-state random_password.p
a secret of an unknown action | odd a secret=null..new | = | plan -
an output enters | .output_changes={"x":{"actions":["«create¦update»"],"before":1,"after_sensitive":true, «"after":2¦
"after_unknown":true»}} | = | secrets-in-state output.x
no output enters | .output_changes={"x":{"actions":["«no-op"],"before":1¦update"],"before":2¦delete"],"before":3»,
  "after":«2¦null»,"after_sensitive":true}} | = | passes
a data source was read | state no-op data.damodel_llama_server.s secret=x..x | =
  | passes
a data source is to be read | read data.damodel_llama_server.s secret=null..null after_unknown/password=true | =
  | secrets-in-state data.damodel_llama_server.s
-- Instances without an end.
an hourly one without max_age | «create¦update¦delete+create¦create+delete¦create+forget¦no-op» a «after/max_age=null¦
after_unknown/max_age=true¦after/max_age=9h after_sensitive/max_age=true¦after/payment_type=null¦
after_unknown/payment_type=true» importing/id=i | deny no-max-age | no-max-age a
one whose max_age is removed | update a before/max_age=9h | = | no-max-age a
one with max_age | «create¦update¦delete+create» a after/max_age=9h | = | passes
one that stays or goes | «no-op a¦no-op a from=b¦state no-op a¦delete a¦
delete a importing/id=i¦forget a¦drift update a 1..2» | = | passes
a prepaid one | create a after/payment_type=«Daily¦Weekly¦Monthly» | = | passes
an exception for it | create a | deny no-max-age; except a; of no-max-age | passes
-- Moves, which lead neither out of a rule nor into an exception.
a sum, not moved | update a 1..2 | «max 700¦rule **; max 700¦rule a; max 700» «¦; except module.prod.**¦; except b»
  | max-monthly-increase -
a sum, moved | update a 1..2 from=b
  | «max 700¦rule a; max 700¦rule b; max 700» «¦; except a¦; except b¦; except a; except b» | max-monthly-increase -
data, moved | delete+create a from=b | «deny destroy-data¦rule a; deny destroy-data¦rule b; deny destroy-data» «¦;
  except a¦; except b¦; except a; except b» | destroy-data a
an exception of both addresses | update a 1..2 from=b | «max 700¦rule b; max 700»; except a,b | passes
an exception of both addresses, for data | delete+create a from=b
  | «deny destroy-data¦rule b; deny destroy-data»; except a,b | passes
a deposed one leaves a rule | delete a .deposed=1a2b from=b | rule b; deny destroy-data | destroy-data a (deposed 1a2b)
a term leaves a rule | create a after/payment_type=Monthly from=b | rule b; deny prepaid | prepaid a
a secret leaves a rule | update a secret=x..y from=b | rule b; deny secrets-in-state | secrets-in-state a
growth leaves a rule | update disk 30..60 from=damodel_cloud_disk.e | rule damodel_cloud_disk.e; deny unpriced
  | unpriced disk
an unknown price leaves a rule | update a after/estimated_cost=null from=b | rule b; max 9 | max-monthly-increase a
a move to its own address | delete a from=a | deny destroy-data; except a | passes
a move first, a destroy in the next plan | no-op a from=b && delete a | rule b; deny destroy-data | passes
-- Exceptions.
an exception from the rule | delete a | deny destroy-data; except a «¦; of prepaid,destroy-data» | passes
an exception for all of a rule's part | delete a | rule **; deny destroy-data; except a | passes
an exception from another rule | delete a | deny destroy-data; except a; of prepaid | destroy-data a
an exception for others | delete a | deny destroy-data; except «b¦none» | destroy-data a
another object beside it | delete a; delete b | deny destroy-data; except a | destroy-data b
an exception for a deposed one | delete a .deposed=1a2b | = | passes
an exception in each plan | delete a && delete a | = | passes
one of three rules | delete+create a 1..2 after/payment_type=Monthly
  | max 9; deny destroy-data,prepaid; except a; of prepaid | destroy-data a, max-monthly-increase -
all three rules | = | max 9; deny destroy-data,prepaid; except a | passes
excepted money does not count | create a 9; create b | max 730; except a | passes
money beside it does | = | max 729; except a | max-monthly-increase -
money excepted from another rule | create a 9 | max 9; except a; of prepaid | max-monthly-increase -
an excepted decrease does not pay | delete a 9; create b | max 9; except a | max-monthly-increase -
an excepted unknown price | create a after/estimated_cost=null | max 9; except a «¦; of max-monthly-increase» | passes
an unknown price excepted from another rule | = | max 9; except a; of unpriced | max-monthly-increase a
an excepted output | .output_changes={"x":{"actions":["create"],"after":1,"after_sensitive":true}}
  | deny secrets-in-state; except output.x | passes
an expired one for what changes | «forget a¦no-op a importing/id=i¦no-op b from=a¦update a»
  | deny destroy-data; expired a | exception -
an expired one lifts nothing | delete a | = | destroy-data a, exception -
an expired one is all of the policy | delete a | expired a | exception -
an expired one for an output that changes | .output_changes={"x":{"actions":["create"],"after":1}}
  | deny destroy-data; expired output.x | exception -
an expired one for an output that stays | .output_changes={"x":{"actions":["no-op"],"before":1,"after":1}} | =
  | passes
an expired one for what stays | «no-op a¦state no-op a» | deny destroy-data; expired a | passes
an expired one for nothing | nothing | = | passes
an exception that cannot be read | nothing | except a.b; «of plan¦max 9¦expire = 2027-01-01¦reason = 1» | no policy
-- Patterns: in a rule each violates where it matches, in an exception where it does not.
an output under a rule | .output_changes={"x":{"actions":["create"],"after":1,"after_sensitive":true}}
  | rule «output.x¦output.*¦**»; deny secrets-in-state | secrets-in-state output.x
an output under another rule | = | rule «output.y¦x¦output»; deny secrets-in-state | passes
a rule with a part of a name | delete damodel_instance.ab | rule «damodel_instance.a*¦damodel_*.ab»; deny destroy-data
  | destroy-data damodel_instance.ab
an exception with one | = | deny destroy-data; except «damodel_instance.a*¦damodel_*.ab» | passes
a pattern that cannot be read | nothing | «rule¦except» «a..b¦.¦a.» | no policy
-- A recorded plan.
the limit is reached | everything | max 6751.67 | max-monthly-increase weekly,
  max-monthly-increase damodel_instance.spot["a|b`c<i>@team"]
the limit is passed | everything | max 6751.66 | max-monthly-increase -, max-monthly-increase weekly,
  max-monthly-increase damodel_instance.spot["a|b`c<i>@team"]
terms | everything | deny prepaid | prepaid weekly, prepaid module.paid.damodel_instance.monthly
data | everything | deny destroy-data | destroy-data damodel_cloud_disk.gone["<script>alert(1)</script>"],
  destroy-data create_first, destroy-data prepaid_gone, destroy-data replaced[0], destroy-data tainted,
  destroy-data replaced[0] (deposed byebye01), destroy-data damodel_private_image.gone
secrets | everything | deny secrets-in-state | secrets-in-state create_first, secrets-in-state created,
  secrets-in-state imported, secrets-in-state replaced[0], secrets-in-state tainted, secrets-in-state weekly,
  secrets-in-state damodel_llama_server.key, secrets-in-state data.damodel_instance.later,
  secrets-in-state module.paid.damodel_instance.monthly, secrets-in-state output.password,
  secrets-in-state random_password.p
disks | everything | deny unpriced | unpriced damodel_cloud_disk.grows, unpriced replaced[0]
no gate | everything | no gate | passes
"#;

/// `pattern | address of a destroyed instance | where it matches`: in a rule, which violates, or in an exception, which
/// lifts it.
const PATTERNS: &str = r#"
** | module.m["x.y"].damodel_instance.a[0] | both
*.* | damodel_instance.a | both
* | damodel_instance.a | neither
damodel_instance.a.** | damodel_instance.a | both
**.damodel_instance.a | damodel_instance.a | both
**.damodel_instance.a | damodel_instance.b["].damodel_instance.a"] | neither
module.prod.** | module.prod["eu"].module.x.damodel_instance.a | rule
module.prod.** | module.production.damodel_instance.a | neither
module.prod.** | damodel_instance.prod | neither
module.prod.** | module.m.module.prod.damodel_instance.a | neither
module.*.damodel_instance.a | module.m.damodel_instance.a | both
module.*.damodel_instance.a | module.m["k"].damodel_instance.a | rule
module.*.damodel_instance.a | module.m.module.n.damodel_instance.a | neither
module.m["a.*"].** | module.m["a.*"].damodel_instance.a | both
module.m["a.*"].** | module.m["a.b"].damodel_instance.a | neither
module.m[*].** | module.m["a.b"].damodel_instance.a | both
module.m.damodel_instance.a | module.m[0].damodel_instance.a | rule
damodel_instance.* | damodel_instance.a["k"] | rule
damodel_instance.a | damodel_instance.a[0] | rule
damodel_instance.a | damodel_instance.ab | neither
damodel_instance.a[*] | damodel_instance.a["k.l"] | both
damodel_instance.a[*] | damodel_instance.a | neither
damodel_instance.a[0] | damodel_instance.a[0] | both
damodel_instance.a[0] | damodel_instance.a[1] | neither
damodel_instance.a[0] | damodel_instance.a["0"] | neither
damodel_instance.a[0] | damodel_instance.a | neither
damodel_instance.a["*"] | damodel_instance.a["k"] | neither
damodel_instance.a["say\"x.y\""] | damodel_instance.a["say\"x.y\""] | both
"#;

#[test]
fn every_attack_has_its_verdict() {
    let mut wrong = Vec::new();
    let rows = rows();
    for Row { name, plans, policy, expected } in &rows {
        let judged = judged(plans, policy);
        if judged != *expected {
            wrong.push(format!("{name}: {judged:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

fn rows() -> Vec<Row> {
    let (mut lines, mut last) = (Vec::new(), [String::new(), String::new()]);
    for line in TABLE
        .replace("¦\n", "¦")
        .replace("\n  ", " ")
        .lines()
        .filter(|line| !(line.is_empty() || line.starts_with("--")))
    {
        let mut cells: Vec<String> = line.split(" | ").map(str::to_owned).collect();
        for (cell, last) in cells[1..3].iter_mut().zip(&mut last) {
            if cell == "=" { cell.clone_from(last) } else { last.clone_from(cell) }
        }
        lines.extend(choices(&cells.join(" | ")));
    }
    for line in PATTERNS.trim().lines() {
        let (pattern, rest) = line.split_once(" | ").unwrap();
        let (address, matches) = rest.split_once(" | ").unwrap();
        for (policy, misses) in [("rule P; deny destroy-data", "neither"), ("deny destroy-data; except P", "both")] {
            let verdict = if matches == misses { "passes".to_owned() } else { format!("destroy-data {address}") };
            lines.push(format!("{pattern} | delete {address} | {} | {verdict}", policy.replace('P', pattern)));
        }
    }
    lines.iter().map(|line| Row::read(line)).collect()
}

/// A line for each choice of `«x¦y»`.
fn choices(line: &str) -> Vec<String> {
    let Some((before, rest)) = line.split_once('«') else { return vec![line.to_owned()] };
    let (words, after) = rest.split_once('»').unwrap();
    words.split('¦').flat_map(|word| choices(&format!("{before}{word}{after}"))).collect()
}

/// The address that a word stands for.
fn full(word: &str) -> String {
    match word {
        "disk" => "damodel_cloud_disk.d".to_owned(),
        "prod" => "module.prod.damodel_cloud_disk.d".to_owned(),
        word if word.contains('.') || !word.starts_with(|c: char| c.is_ascii_lowercase()) => word.to_owned(),
        word => format!("damodel_instance.{word}"),
    }
}

fn policy(text: &str) -> String {
    let list = |words: &str| words.split(',').map(|word| format!("'{word}'")).collect::<Vec<_>>().join(", ");
    let matching =
        |words: &str| format!("match = [{}]", list(&words.split(',').map(full).collect::<Vec<_>>().join(",")));
    let exception = "[[exception]]\nowner = 'o'\nreason = 'r'\nexpires = 2026-11-22\n";
    let line = |part: &str| match part.split_once(' ').unwrap_or((part, "")) {
        ("empty", _) => "[limits]".to_owned(),
        ("max", most) => format!("max_monthly_increase = {most}"),
        ("deny", rules) => format!("deny = [{}]", list(rules)),
        ("rule", patterns) => format!("[[rule]]\n{}", matching(patterns)),
        ("except", patterns) => exception.to_owned() + &matching(patterns),
        ("expired", patterns) => exception.replace("22", "21") + &matching(patterns),
        ("of", rules) => format!("rule = [{}]", list(rules)),
        _ => part.to_owned(),
    };
    let lines: Vec<String> = text.split(';').map(str::trim).map(line).collect();
    let header = if text.starts_with("max") || text.starts_with("deny") { "[limits]\n" } else { "" };
    if text == "no gate" { String::new() } else { format!("{header}{}", lines.join("\n")) }
}

impl Row {
    fn read(line: &str) -> Self {
        let mut cells = line.split(" | ").map(str::trim);
        let [name, plans, limits, verdict] = [(); 4].map(|()| cells.next().unwrap());
        let violation = |violation: &str| match violation.trim().split_once(' ') {
            Some((rule, address)) if rule != "no" => format!("{rule} {}", full(address)),
            _ => violation.to_owned(),
        };
        let mut expected: Vec<String> = verdict.split(',').filter(|text| *text != "passes").map(violation).collect();
        expected.sort();
        Self {
            name: format!("{name} | {plans} | {limits}"),
            plans: plans.split("&&").map(plan).collect(),
            policy: policy(limits),
            expected,
        }
    }
}

fn plan(text: &str) -> Value {
    let mut plan = plan_of(&[]);
    plan["complete"] = true.into();
    let add = |list: &mut Value, entry: Value| match list {
        Value::Array(list) => list.push(entry),
        list => *list = json!([entry]),
    };
    for part in text.split(';').map(str::trim).filter(|part| !["", "nothing"].contains(part)) {
        match part.split_once(' ').unwrap_or((part, "")) {
            ("everything", _) => plan = everything(),
            ("drift", change) => add(&mut plan["resource_drift"], entry(change)),
            ("state", object) => {
                let mut object = entry(object);
                object["values"] = object["change"]["after"].take();
                object["sensitive_values"] = object["change"]["after_sensitive"].take();
                add(&mut plan["prior_state"]["values"]["root_module"]["resources"], object);
            }
            _ if part.starts_with('.') => set(&mut plan, &part[1..]),
            _ => add(&mut plan["resource_changes"], entry(part)),
        }
    }
    plan
}

/// Sets the value of `path=value`: JSON, or else a text.
fn set(within: &mut Value, edit: &str) {
    let (path, value) = edit.split_once('=').unwrap();
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    *path.split('/').fold(within, |place, key| &mut place[key]) = value;
}

fn entry(text: &str) -> Value {
    let mut words = text.split_whitespace().peekable();
    let [actions, address] = [(); 2].map(|()| words.next().unwrap());
    let address = full(address);
    let kind = address.split('.').find(|step| step.contains('_')).unwrap();
    let mode = if address.starts_with("data.") { "data" } else { "managed" };
    let actions: Vec<&str> = actions.split('+').collect();
    let mut entry = json!({"address": address, "mode": mode, "type": kind, "change": {"actions": actions}});
    let change = |entry: &mut Value, edit: &str| set(&mut entry["change"], edit);
    let both = |text: &str| {
        let (before, after) = text.split_once("..").unwrap_or((text, text));
        [("before", before.to_owned()), ("after", after.to_owned())]
    };
    let numbers = words.next_if(|word| !word.contains('=')).unwrap_or("1");
    for (side, number) in both(numbers) {
        let values = match kind {
            "damodel_instance" => {
                r#"{"id":"ins-1","payment_type":"Hourly","estimated_cost":
                {"payment_type":"Hourly","unit_price":N,"data_disk_price":0}}"#
            }
            _ => r#"{"id":"7","size_gb":N}"#,
        };
        change(&mut entry, &format!("{side}={}", values.replace('N', &number)));
    }
    for word in words {
        match word.split_once('=').unwrap() {
            ("from", address) => entry["previous_address"] = full(address).into(),
            ("exist", disk) => {
                let (id, goes) = disk.split_once(':').unwrap();
                let disk = format!(r#"before/exist_disks=[{{"disk_id":{id},"release_with_instance":{goes}}}]"#);
                change(&mut entry, &disk);
            }
            ("secret", values) => {
                for (side, value) in both(values) {
                    change(&mut entry, &format!("{side}/password={value}"));
                    change(&mut entry, &format!("{side}_sensitive/password=true"));
                }
            }
            _ if word.starts_with('.') => set(&mut entry, &word[1..]),
            _ => change(&mut entry, word),
        }
    }
    match actions[..] {
        ["create"] => change(&mut entry, "before=null"),
        ["delete"] | ["forget"] => change(&mut entry, "after=null"),
        _ => {}
    }
    entry
}
