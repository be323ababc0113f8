//! The one line that a plugin writes on standard output (plugin protocol, the handshake line).

use std::io::{self, Write};

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};

use super::listener::Endpoint;

/// What the line tells the host.
#[derive(Debug)]
pub(super) struct Handshake<'a> {
    /// The server's certificate in DER form; empty without TLS.
    pub(super) certificate: &'a [u8],
    /// Where the server listens.
    pub(super) endpoint: &'a Endpoint,
    /// Whether the host knows the seventh field. An older one would take it for a part of the certificate.
    pub(super) multiplex: bool,
}

impl Handshake<'_> {
    /// Writes the line in one piece and flushes it. The server must be listening by then.
    pub(super) fn write(&self, mut output: impl Write) -> io::Result<()> {
        output.write_all(self.line().as_bytes())?;
        output.flush()
    }

    fn line(&self) -> String {
        let Endpoint { network, address } = self.endpoint;
        // With padding the host fails: it decodes the standard alphabet without.
        let certificate = STANDARD_NO_PAD.encode(self.certificate);
        // Several brokered connections over one socket are not offered here.
        let multiplex = if self.multiplex { "|false" } else { "" };
        format!("{HANDSHAKE_VERSION}|{PROTOCOL_VERSION}|{network}|{address}|grpc|{certificate}{multiplex}\n")
    }
}

/// The version of the handshake itself.
const HANDSHAKE_VERSION: u32 = 1;

/// The only major version of the provider protocol that is spoken here. A host that does not offer it refuses, and says
/// which ones it does (plugin protocol, Version negotiation).
pub(super) const PROTOCOL_VERSION: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn line(certificate: &[u8], multiplex: bool) -> String {
        let endpoint = Endpoint { network: "unix", address: "/tmp/plugin1/socket".to_owned() };
        Handshake { certificate, endpoint: &endpoint, multiplex }.line()
    }

    #[test]
    fn a_plain_server_leaves_the_sixth_field_empty() {
        assert_eq!(line(b"", false), "1|6|unix|/tmp/plugin1/socket|grpc|\n");
    }

    #[test]
    fn the_certificate_has_the_standard_alphabet_and_no_padding() {
        assert_eq!(line(&[0xfb, 0xff, 0xfe, 0xff], false), "1|6|unix|/tmp/plugin1/socket|grpc|+//+/w\n");
    }

    #[test]
    fn a_host_that_asks_learns_that_nothing_is_multiplexed() {
        assert_eq!(line(&[0], true), "1|6|unix|/tmp/plugin1/socket|grpc|AA|false\n");
    }
}
