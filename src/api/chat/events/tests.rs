//! What is read from event streams.

use futures_util::{FutureExt, StreamExt, stream};
use proptest::{collection::vec, prelude::*};
use rstest::rstest;

use super::*;

fn read(chunks: Vec<Result<Bytes, &'static str>>) -> Vec<Result<ServerEvent, EventError<&'static str>>> {
    EventStream::new(stream::iter(chunks)).collect().now_or_never().unwrap()
}

fn data(chunks: Vec<&'static str>) -> Vec<String> {
    let chunks = chunks.into_iter().map(|chunk| Ok(Bytes::from_static(chunk.as_bytes()))).collect();
    read(chunks).into_iter().map(|event| event.unwrap().data).collect()
}

#[rstest]
#[case::line_feeds("data: a\n\ndata: b\n\n", &["a", "b"])]
#[case::returns("data: a\r\rdata: b\r\r", &["a", "b"])]
#[case::both("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"])]
#[case::mixed("data: a\r\n\ndata: b\n\r\n", &["a", "b"])]
#[case::comments(": ping\n\n:\n\ndata: a\n: ping\n\n", &["a"])]
#[case::lines("data: a\ndata: b\ndata\ndata:c\n\n", &["a\nb\n\nc"])]
#[case::one_space_only("data:  a \n\n", &[" a "])]
#[case::other_fields("id: 7\nretry: 10\nfoo: bar\ndata: a\n\nevent: empty\n\n", &["a"])]
#[case::empty_data("data:\n\n", &[""])]
#[case::byte_order_mark("\u{feff}data: a\n\n", &["a"])]
#[case::left_open("data: a\n\ndata: b", &["a", "b"])]
#[case::open_line("data: a\n\ndata: b\n", &["a", "b"])]
#[case::colon_in_data("data: {\"a\":\"b:c\"}\n\n", &["{\"a\":\"b:c\"}"])]
#[case::nothing("", &[])]
fn events_in_every_form(#[case] text: &'static str, #[case] expected: &[&str]) {
    assert_eq!(data(vec![text]), expected);
}

#[test]
fn names_belong_to_their_event() {
    let events = read(vec![Ok(Bytes::from("event: error\ndata: a\n\ndata: b\n\n"))]);
    let names: Vec<_> = events.into_iter().map(|event| event.unwrap().name).collect();
    assert_eq!(names, [Some("error".to_owned()), None]);
}

#[test]
fn an_error_ends_it_and_drops_what_was_open() {
    let events = read(vec![Ok(Bytes::from("data: a\n\ndata: b")), Err("cut"), Ok(Bytes::from("data: c\n\n"))]);
    assert_eq!(events.len(), 2);
    assert_eq!(events[0].as_ref().unwrap().data, "a");
    assert!(matches!(events[1], Err(EventError::Broken("cut"))));
}

#[test]
fn an_event_without_an_end_is_refused() {
    let endless = stream::repeat_with(|| Ok::<_, ()>(Bytes::from(vec![b'a'; 1 << 20])));
    let events: Vec<_> = EventStream::new(endless).collect().now_or_never().unwrap();
    assert!(matches!(events[..], [Err(EventError::TooLarge)]));
}

#[test]
fn data_is_not_shown() {
    let mut decoder = EventStream::new(stream::iter([Ok::<_, ()>(Bytes::from("data: planted\n\ndata: planted"))]));
    let event = decoder.next().now_or_never().unwrap().unwrap();
    assert!(!format!("{event:?} {:?}", decoder.decoder).contains("planted"));
}

proptest! {
    #[test]
    fn cuts_change_nothing(cuts in vec(0..100_usize, 0..12)) {
        let text = "\u{feff}: ping\r\ndata: größe\r\ndata: zwei\r\n\r\nevent: x\rdata: 雪\r\r\n\
                    data: [DONE]\n\n".as_bytes();
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|cut| Ok(Bytes::copy_from_slice(&text[cut[0]..cut[1]]))).collect();
        let events: Vec<_> = read(chunks).into_iter().map(|event| event.unwrap().data).collect();
        prop_assert_eq!(events, ["größe\nzwei", "雪", "[DONE]"]);
    }
}
