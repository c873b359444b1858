// SPDX-License-Identifier: MIT OR Apache-2.0
//! TLS 1.3 and nothing older, raw public keys of both ends, no session tickets and no early data: every connection proves both
//! keys anew.

use crate::{Key, PublicKey};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, DistinguishedName,
    Error, PeerIncompatible, ServerConfig, ServerConnection, SignatureScheme,
};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Why an end is not known.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// It has proved a key that is not trusted.
    #[error("its key {0} is not trusted")]
    Untrusted(PublicKey),
    /// It does not trust this end's key.
    #[error("it does not trust the key of this end")]
    Distrusts,
    /// It took too long.
    #[error("it did not say who it is in time")]
    Late,
    /// It is gone.
    #[error("it ended the connection before it said who it is")]
    Ended,
    /// What it says is no TLS 1.3 with raw public keys.
    #[error("what it says is not what fatpath says: {0}")]
    Tls(Error),
    /// The socket's.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Says whether a key is trusted.
pub(crate) type Trusts = Box<dyn Fn(&PublicKey) -> bool + Send + Sync>;

/// Judges the key of the other end once it has proved that it has the private half.
pub(crate) struct Judge {
    trusts: Trusts,
    algorithms: WebPkiSupportedAlgorithms,
    /// What it proved.
    proved: OnceLock<PublicKey>,
}

impl Judge {
    pub fn new(trusts: Trusts) -> Arc<Judge> {
        Arc::new(Judge {
            trusts,
            algorithms: provider().signature_verification_algorithms,
            proved: OnceLock::new(),
        })
    }

    /// What the other end proved, trusted or not.
    pub fn proved(&self) -> Option<PublicKey> {
        self.proved.get().copied()
    }

    fn judge(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let spki = SubjectPublicKeyInfoDer::from(key.as_ref());
        let valid = verify_tls13_signature_with_raw_key(message, &spki, signed, &self.algorithms)?;
        let public = is_key(key)?;
        let public = *self.proved.get_or_init(|| public);
        match (self.trusts)(&public) {
            true => Ok(valid),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }
}

impl fmt::Debug for Judge {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Judge")
            .field("proved", &self.proved)
            .finish_non_exhaustive()
    }
}

fn is_key(key: &CertificateDer<'_>) -> Result<PublicKey, Error> {
    PublicKey::of_spki(key).ok_or_else(|| CertificateError::BadEncoding.into())
}

/// TLS 1.2 is not spoken.
fn too_old() -> Error {
    PeerIncompatible::ServerDoesNotSupportTls12Or13.into()
}

fn schemes() -> Vec<SignatureScheme> {
    vec![SignatureScheme::ED25519]
}

impl ServerCertVerifier for Judge {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        is_key(key).map(|_| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(too_old())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.judge(message, key, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Judge {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        is_key(key).map(|_| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(too_old())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.judge(message, key, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// The end that was connected to, of what `protocol` names (ALPN).
pub(crate) fn server(
    key: &Key,
    protocol: &str,
    judge: Arc<Judge>,
) -> Result<ServerConnection, Error> {
    let resolver = AlwaysResolvesServerRawPublicKeys::new(key.certified());
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(judge)
        .with_cert_resolver(Arc::new(resolver));
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.alpn_protocols = vec![protocol.into()];
    ServerConnection::new(Arc::new(config))
}

/// The end that connects.
pub(crate) fn client(
    key: &Key,
    protocol: &str,
    judge: Arc<Judge>,
) -> Result<ClientConnection, Error> {
    let resolver = AlwaysResolvesClientRawPublicKeys::new(key.certified());
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(judge)
        .with_client_cert_resolver(Arc::new(resolver));
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    config.alpn_protocols = vec![protocol.into()];
    // Names do not matter: the key is what the other end is known by.
    let nobody = ServerName::try_from("fatpath").map_err(|_| Error::UnsupportedNameType)?;
    ClientConnection::new(Arc::new(config), nobody)
}

fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    PROVIDER
        .get_or_init(|| Arc::new(aws_lc_rs::default_provider()))
        .clone()
}
