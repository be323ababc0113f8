//! Ports for servers that a test starts later, or not at all.

use std::{
    net::TcpListener,
    process,
    sync::atomic::{AtomicU16, Ordering},
};

/// A port without a listener: each is given once, and the system assigns only higher ones by itself. One that the
/// system assigned and that is free again may be assigned to another test.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = process::id() % 10_000;
    loop {
        let number = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(20_000 + (first + number) % 10_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
