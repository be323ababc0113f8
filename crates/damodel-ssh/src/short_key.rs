//! OpenSSH's private keys of the curve P-256 whose number is shorter than 32 bytes.
//!
//! OpenSSH writes the number without its leading zeros, so that one key of 512 has 31 bytes or fewer. ssh-key
//! 0.7.0-rc.11, which russh reads keys with, takes such a key for damaged; it reads shorter numbers of the larger
//! curves.

use russh::keys::ssh_key::{
    Error, Mpint, PrivateKey,
    encoding::{Decode, Error as Encoding, Reader, pem::PemLabel},
    private::{EcdsaKeypair, KeypairData},
    public::{EcdsaPublicKey, KeyData},
};

/// A key whose number may be shorter. It is read with `DecodePem::decode_pem`.
pub(super) struct ShortKey(pub(super) PrivateKey);

impl PemLabel for ShortKey {
    const PEM_LABEL: &'static str = PrivateKey::PEM_LABEL;
}

impl Decode for ShortKey {
    type Error = Error;

    /// The fields are those of OpenSSH's PROTOCOL.key, of a file with one key that is not encrypted.
    fn decode(reader: &mut impl Reader) -> Result<Self, Error> {
        let magic = <[u8; 15]>::decode(reader)?;
        let (cipher, derivation, options) =
            (String::decode(reader)?, String::decode(reader)?, Vec::<u8>::decode(reader)?);
        let keys = u32::decode(reader)?;
        let plain = (cipher.as_str(), derivation.as_str(), options.as_slice()) == ("none", "none", &[]);
        if &magic != b"openssh-key-v1\0" || !plain || keys != 1 {
            return Err(Error::FormatEncoding);
        }
        let outer = reader.read_prefixed(KeyData::decode)?;
        reader.read_prefixed(|reader| {
            let (first, second) = (u32::decode(reader)?, u32::decode(reader)?);
            let public = KeyData::decode(reader)?;
            let number = Mpint::decode(reader)?;
            let comment = String::decode(reader)?;
            // What follows fills the last block.
            reader.drain(reader.remaining_len())?;
            let KeyData::Ecdsa(EcdsaPublicKey::NistP256(point)) = public else { return Err(Error::AlgorithmUnknown) };
            let number = number.as_positive_bytes().ok_or(Error::FormatEncoding)?;
            if first != second || outer != public {
                return Err(Error::FormatEncoding);
            }
            let zeros = 32usize.checked_sub(number.len()).ok_or(Encoding::Length)?;
            let mut padded = [0; 32];
            padded[zeros..].copy_from_slice(number);
            let pair = EcdsaKeypair::NistP256 { public: point, private: padded.into() };
            Ok(Self(PrivateKey::new(KeypairData::Ecdsa(pair), comment)?))
        })
    }
}
