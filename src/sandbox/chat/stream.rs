//! Events on the wire (HTML standard, server-sent events).

use crate::sandbox::form::ChatStream;

/// How many bytes go out at once where events are cut anywhere: fewer than a Chinese character and its neighbours need.
const PIECE: usize = 7;

/// What goes out, in the portions in which it does.
pub(super) fn written(events: &[String], form: ChatStream) -> Vec<Vec<u8>> {
    let portions = events.iter().enumerate().map(|(index, data)| match form {
        ChatStream::Comments => format!(": keep-alive\n\nid: {index}\nevent: message\nretry: 500\ndata: {data}\n\n"),
        ChatStream::Crlf => format!("data:{data}\r\n\r\n"),
        ChatStream::Events | ChatStream::Pieces | ChatStream::Whole => format!("data: {data}\n\n"),
    });
    if form == ChatStream::Pieces {
        portions.collect::<String>().as_bytes().chunks(PIECE).map(<[u8]>::to_vec).collect()
    } else {
        portions.map(String::into_bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(ChatStream::Events, &["data: 你好\n\n", "data: [DONE]\n\n"])]
    #[case(ChatStream::Crlf, &["data:你好\r\n\r\n", "data:[DONE]\r\n\r\n"])]
    fn events_go_out_one_by_one(#[case] form: ChatStream, #[case] expected: &[&str]) {
        let expected: Vec<Vec<u8>> = expected.iter().map(|event| event.as_bytes().to_vec()).collect();
        assert_eq!(written(&["你好".to_owned(), "[DONE]".to_owned()], form), expected);
    }

    #[test]
    fn pieces_cut_characters_and_are_the_same_bytes() {
        let events = ["你好".to_owned()];
        let pieces = written(&events, ChatStream::Pieces);
        assert!(std::str::from_utf8(&pieces[0]).is_err());
        assert_eq!(pieces.concat(), written(&events, ChatStream::Events).concat());
    }
}
