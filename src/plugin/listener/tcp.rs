//! A port of the loopback interface.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    ops::RangeInclusive,
};

use super::{Bound, Endpoint, Error, Listener};

/// Listens on the first free port of `ports`; 0 is any port.
pub(super) fn bind(ports: RangeInclusive<u16>) -> Result<Bound, Error> {
    let mut refusal = io::ErrorKind::AddrNotAvailable.into();
    for port in ports.clone() {
        match bind_port(port) {
            Ok(bound) => return Ok(bound),
            Err(error) => refusal = error,
        }
    }
    Err(Error::Tcp { minimum: *ports.start(), maximum: *ports.end(), source: refusal })
}

fn bind_port(port: u16) -> io::Result<Bound> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    listener.set_nonblocking(true)?;
    let endpoint = Endpoint { network: "tcp", address: listener.local_addr()?.to_string() };
    Ok(Bound { directory: None, endpoint, listener: Listener::Tcp(listener.try_into()?) })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    fn port(bound: &Bound) -> u16 {
        let address: SocketAddr = bound.endpoint.address.parse().unwrap();
        assert!(address.ip().is_loopback());
        address.port()
    }

    #[tokio::test]
    async fn a_taken_port_is_passed_over() {
        let taken = bind(0..=0).unwrap();
        let first = port(&taken);
        let last = first.saturating_add(50);
        let next = bind(first..=last).unwrap();
        assert!((first + 1..=last).contains(&port(&next)));
        assert_eq!(next.endpoint.network, "tcp");
    }

    #[tokio::test]
    async fn a_range_without_a_free_port_is_an_error() {
        let taken = bind(0..=0).unwrap();
        let only = port(&taken);
        let error = bind(only..=only).unwrap_err();
        assert!(matches!(error, Error::Tcp { minimum, .. } if minimum == only));
    }
}
