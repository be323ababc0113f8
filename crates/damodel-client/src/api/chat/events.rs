//! Server-sent events, read from any stream of bytes.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::Stream;

use crate::api::encoding::without_mark;

/// The largest event that is read, in bytes.
const LARGEST: usize = 16 << 20;

/// One event. `Debug` does not print its data, which may be part of an answer.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerEvent {
    /// `event`, if the server named it.
    pub name: Option<String>,
    /// `data`; several lines are joined by line ends.
    pub data: String,
}

impl fmt::Debug for ServerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerEvent {{ name: {:?}, data: {} bytes }}", self.name, self.data.len())
    }
}

/// Why a stream of events ended early.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EventError<E> {
    /// The byte stream failed.
    #[error("{0}")]
    Broken(E),
    /// An event is larger than 16 MiB.
    #[error("an event is larger than 16 MiB")]
    TooLarge,
}

/// The events of a byte stream, in the format of the HTML standard: split at any byte, with any line ends, comments,
/// and data of several lines. An unfinished event is returned if the stream ends, and dropped if the stream fails.
///
/// ```
/// # use bytes::Bytes;
/// # use damodel_client::api::EventStream;
/// # use futures_util::{StreamExt, stream};
/// # futures_util::future::FutureExt::now_or_never(async {
/// let bytes = stream::iter(["data: on", "e\n\ndata: two\n\n"].map(|text| Ok::<_, ()>(Bytes::from(text))));
/// let events: Vec<_> = EventStream::new(bytes).map(|event| event.unwrap().data).collect().await;
/// assert_eq!(events, ["one", "two"]);
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct EventStream<S> {
    bytes: S,
    decoder: Decoder,
    ready: VecDeque<ServerEvent>,
    ended: bool,
}

impl<S> EventStream<S> {
    /// Reads the events of these bytes.
    pub fn new(bytes: S) -> Self {
        Self { bytes, decoder: Decoder::default(), ready: VecDeque::new(), ended: false }
    }
}

impl<S, E> Stream for EventStream<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    type Item = Result<ServerEvent, EventError<E>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(event) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            if this.ended {
                return Poll::Ready(None);
            }
            let failure = match Pin::new(&mut this.bytes).poll_next(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(chunk))) if this.decoder.feed(&chunk, &mut this.ready) => continue,
                Poll::Ready(Some(Ok(_))) => EventError::TooLarge,
                Poll::Ready(Some(Err(error))) => EventError::Broken(error),
                Poll::Ready(None) => {
                    this.ended = true;
                    this.decoder.end(&mut this.ready);
                    continue;
                }
            };
            this.ended = true;
            return Poll::Ready(Some(Err(failure)));
        }
    }
}

/// The state between two events.
#[derive(Default)]
struct Decoder {
    line: Vec<u8>,
    /// Whether a line was read: a byte order mark is allowed only at the start of the first one.
    begun: bool,
    /// Whether the last byte was a carriage return: a line feed after it belongs to the same line end.
    returned: bool,
    name: Option<String>,
    data: Option<String>,
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decoder {{ {} bytes }}", self.size())
    }
}

impl Decoder {
    /// Adds bytes; `false` if an event is too large.
    fn feed(&mut self, chunk: &[u8], ready: &mut VecDeque<ServerEvent>) -> bool {
        for byte in chunk {
            match byte {
                b'\n' if self.returned => {}
                b'\n' | b'\r' => self.end_line(ready),
                byte => self.line.push(*byte),
            }
            self.returned = *byte == b'\r';
            if self.size() > LARGEST {
                return false;
            }
        }
        true
    }

    fn end(&mut self, ready: &mut VecDeque<ServerEvent>) {
        self.end_line(ready);
        self.end_event(ready);
    }

    fn end_line(&mut self, ready: &mut VecDeque<ServerEvent>) {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let line = if self.begun { &*text } else { without_mark(&text) };
        self.begun = true;
        if line.is_empty() {
            return self.end_event(ready);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "event" => self.name = Some(value.to_owned()).filter(|name| !name.is_empty()),
            // Comments, ids and reconnection times are not needed for one answer.
            _ => {}
        }
    }

    fn end_event(&mut self, ready: &mut VecDeque<ServerEvent>) {
        let name = self.name.take();
        if let Some(data) = self.data.take() {
            ready.push_back(ServerEvent { name, data });
        }
    }

    fn size(&self) -> usize {
        self.line.len() + self.data.as_ref().map_or(0, String::len)
    }
}

#[cfg(test)]
mod tests {
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
}
