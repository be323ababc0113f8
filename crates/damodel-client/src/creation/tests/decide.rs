//! What a create does about each record: the table of `decide`.

use super::{
    super::{
        decide::{Decision, Whose, decide},
        found::Found,
    },
    *,
};
use crate::{api::read, creation::pending::Place};

const ALL: [Whose; 3] = [Whose::Other, Whose::Own, Whose::SameProgram];
const OWN: [Whose; 1] = [Whose::Own];
/// Their absence proves nothing.
const NOT_OWN: [Whose; 2] = [Whose::Other, Whose::SameProgram];
const OTHER: [Whose; 1] = [Whose::Other];
const NOT_OTHER: [Whose; 2] = [Whose::Own, Whose::SameProgram];
const ANYWHERE: [Place; 3] = [Place::Here, Place::OtherDirectory, Place::OtherState];
const THIS_STATE: [Place; 2] = [Place::Here, Place::OtherDirectory];
const OTHER_STATE: [Place; 1] = [Place::OtherState];
const ANY: [CreatePhase; 3] = [CreatePhase::Sent, CreatePhase::Accepted, CreatePhase::Finished];

fn found(what: &str) -> Found<Instance> {
    let object =
        |status: &str| read(format!("{{\"instance_uid\": \"ins-1\", \"status\": {status:?}}}").as_bytes()).unwrap();
    match what {
        "gone" => Found::Gone,
        "living" => Found::Living(object("Running")),
        "ending" => Found::Living(object("Failed")),
        "nothing" => Found::Nothing,
        "released" => Found::Released(object("Released")),
        "several" => Found::Several(vec!["a".to_owned(), "b".to_owned()]),
        "unknown" => Found::unknown("contradictory"),
        _ => Found::Young,
    }
}

/// What a create does about each record, complete and without overlap. A finished record counts as another
/// request's, and only what this token shows is known of another account.
#[test]
fn each_record_is_adopted_sent_again_forgotten_left_or_stops_the_create() {
    use CreatePhase::{Accepted, Sent};
    use Decision::{Adopt, Forget, Leave, SendAgain, Stop};
    use Evidence::{Lacking, Seen, Unknown};
    type Row<'a> = (&'a [&'a str], &'a [Whose], &'a [Place], &'a [CreatePhase], Decision);
    let same: [Row<'_>; 11] = [
        (&["living", "ending"], &ALL, &ANYWHERE, &ANY, Adopt),
        (&["released"], &ALL, &ANYWHERE, &ANY, Forget),
        (&["gone"], &OWN, &ANYWHERE, &ANY, Forget),
        (&["nothing"], &OWN, &ANYWHERE, &ANY, SendAgain),
        (&["gone", "nothing"], &NOT_OWN, &ANYWHERE, &ANY, Leave),
        (&["several", "unknown", "young"], &OTHER, &ANYWHERE, &ANY, Leave),
        (&["unknown"], &OWN, &ANYWHERE, &[Accepted], Adopt),
        (&["unknown"], &OWN, &ANYWHERE, &[Sent], Stop(Unknown)),
        (&["unknown"], &[Whose::SameProgram], &ANYWHERE, &ANY, Stop(Unknown)),
        (&["several"], &NOT_OTHER, &ANYWHERE, &ANY, Stop(Unknown)),
        (&["young"], &NOT_OTHER, &ANYWHERE, &ANY, Stop(Lacking)),
    ];
    let another: [Row<'_>; 9] = [
        (&["living"], &ALL, &THIS_STATE, &ANY, Stop(Seen)),
        (&["living"], &ALL, &OTHER_STATE, &ANY, Leave),
        (&["ending"], &ALL, &ANYWHERE, &ANY, Leave),
        (&["released", "gone", "nothing"], &OWN, &ANYWHERE, &ANY, Forget),
        (&["released", "gone", "nothing"], &NOT_OWN, &ANYWHERE, &ANY, Leave),
        (&["several", "unknown", "young"], &OTHER, &ANYWHERE, &ANY, Leave),
        (&["several", "unknown", "young"], &NOT_OTHER, &OTHER_STATE, &ANY, Leave),
        (&["several", "unknown"], &NOT_OTHER, &THIS_STATE, &ANY, Stop(Unknown)),
        (&["young"], &NOT_OTHER, &THIS_STATE, &ANY, Stop(Lacking)),
    ];
    for what in ["gone", "living", "ending", "nothing", "released", "several", "unknown", "young"] {
        let cases = ALL.iter().flat_map(|whose| ANYWHERE.iter().map(move |place| (whose, place)));
        for (whose, place) in cases {
            for (phase, is_same) in ANY.iter().flat_map(|phase| [(phase, true), (phase, false)]) {
                let table = if is_same && *phase != CreatePhase::Finished { &same[..] } else { &another[..] };
                let is_of = |row: &&Row<'_>| {
                    row.0.contains(&what) && row.1.contains(whose) && row.2.contains(place) && row.3.contains(phase)
                };
                let expected: Vec<Decision> = table.iter().filter(is_of).map(|row| row.4).collect();
                let decided = decide(&found(what), *phase, *whose, *place, is_same);
                assert_eq!(vec![decided], expected, "{what} {phase:?} {whose:?} {place:?} {is_same}");
            }
        }
    }
}
