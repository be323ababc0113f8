//! What a login is made with.

use std::path::PathBuf;

use secrecy::SecretString;

use crate::ssh::{Error, identity};

/// What a login is made with. All that is given is tried, in this order, each where the server takes its method:
/// the private key, the one of the file, the agent's, the password.
///
/// The password answers keyboard-interactive questions where the server takes no passwords otherwise.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// A private key in OpenSSH's form or in PEM (PKCS#1, PKCS#8, SEC1): Ed25519, ECDSA or RSA, not encrypted.
    pub private_key: Option<SecretString>,
    /// A file with such a key. A `~` is not expanded here.
    pub private_key_file: Option<PathBuf>,
    /// An OpenSSH user certificate, as in a `-cert.pub` file, for one of the keys or for one of the agent's.
    pub certificate: Option<String>,
    /// The password of the user.
    pub password: Option<SecretString>,
    /// The socket of an agent whose keys may be used; on Windows, its named pipe.
    pub agent: Option<PathBuf>,
}

impl Credentials {
    /// Tells whether the private key and the certificate can be used, without opening a file or asking anybody.
    ///
    /// # Errors
    ///
    /// [`Error::BadKey`] and [`Error::EncryptedKey`].
    pub fn check(&self) -> Result<(), Error> {
        identity::given(self).map(drop)
    }
}
