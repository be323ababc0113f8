//! Chats: what is asked, how an answer that comes in pieces is put together, and the event stream it comes in.
//!
//! Nothing here knows of HTTP, so that a chat over any other byte stream is read the same way. The call itself is
//! [`Client::chat`](crate::api::Client::chat).

mod answer;
mod events;
mod request;

pub use answer::{ChatAnswer, ChatAssembly, ChatUsage, Pushed};
pub use events::{EventError, EventStream, ServerEvent};
pub use request::{ChatMessage, ChatRequest};
