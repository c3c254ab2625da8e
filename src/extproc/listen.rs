//! Sockets and HTTP/2 bounds of the front door.

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::time::{Interval, Sleep};
use tokio_stream::Stream;
use tonic::transport::server::{Router, TcpIncoming};
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};

use tonic_health::pb::health_server::{Health, HealthServer};

use super::service::Service;
use super::wire::external_processor_server::ExternalProcessorServer;

/// HTTP/2 window of one stream. Small, so that answers which their clients do not read hold little memory.
const STREAM_WINDOW: u32 = 64 * 1024;
/// Streams on one connection; Envoy opens another connection beyond that.
const STREAMS_PER_CONNECTION: u32 = 1024;
/// HTTP/2 window of one connection: every stream's, so that unread answers never stop the other calls of the same
/// Envoy worker (measured: with small windows six such clients stopped everything).
const CONNECTION_WINDOW: u32 = 1 << 30;
/// Streams that Envoy may reset before we have looked at them: beyond it HTTP/2 ends the whole connection, and with it every
/// exchange of that Envoy worker. It resets a stream whenever a caller goes away, so any stranger can bring about as many in
/// one go as Envoy takes requests while we are busy; the usual 20 are one packet. They are let go of at the next look.
const RESET_UNSEEN: usize = 64 * 1024;
/// How often it is looked whether the Unix socket is still there.
const LOOK: Duration = Duration::from_secs(1);

/// After a connection could not be taken.
const PAUSE: Duration = Duration::from_millis(100);

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket, readable and writable by this user alone.
    Unix(PathBuf),
    /// A TCP address.
    Tcp(SocketAddr),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "{address}"),
        }
    }
}

/// Certificates of a TCP listener; clients must show one of `client_ca`'s.
#[derive(Clone, PartialEq, Eq)]
pub struct Tls {
    /// PEM certificate chain.
    pub cert: Vec<u8>,
    /// PEM private key.
    pub key: Vec<u8>,
    /// PEM certificates that client certificates must chain to.
    pub client_ca: Vec<u8>,
}

/// A socket that is bound.
pub enum Listener {
    /// A Unix socket and its path, which is removed when serving ends.
    Unix(UnixListener, PathBuf),
    /// A TCP socket.
    Tcp(TcpListener),
}

impl Listener {
    /// Binds the address.
    ///
    /// # Errors
    /// The address cannot be bound; for a Unix socket also when another process answers on it.
    pub async fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => TcpListener::bind(address).await.map(Self::Tcp),
            Address::Unix(path) => bind_unix(path).await.map(|listener| Self::Unix(listener, path.clone())),
        }
    }
}

/// Binds under another name, restricts it, then renames: nobody can connect before the mode is right, and a socket
/// that a killed process left behind is replaced in one step.
async fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    if let Ok(found) = std::fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the path exists and is not a socket"));
        }
        if tokio::net::UnixStream::connect(path).await.is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens on this socket"));
        }
    }
    bind_in_place(path)
}

fn bind_in_place(path: &Path) -> io::Result<UnixListener> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(name);
    let listener = UnixListener::bind(&beside)?;
    let renamed = std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(0o600))
        .and_then(|()| std::fs::rename(&beside, path));
    if let Err(error) = renamed {
        drop(std::fs::remove_file(&beside));
        return Err(error);
    }
    Ok(listener)
}

/// Connections of a Unix socket, which comes back when its file is removed: without it Envoy could not connect anew, and
/// everything would look well until the connections that are open end.
struct Door {
    listener: UnixListener,
    path: PathBuf,
    /// Of our socket's file, to tell it from one that a successor put in its place.
    inode: Option<u64>,
    look: Interval,
    /// It was removed and could not be put back, which is logged once.
    lost: bool,
}

impl Door {
    fn new(listener: UnixListener, path: PathBuf) -> Self {
        let inode = inode(&path);
        Self { listener, path, inode, look: tokio::time::interval(LOOK), lost: false }
    }

    /// Binds anew where nothing is left of the socket. Another file in its place is someone's intention.
    fn restore(&mut self) {
        if !std::fs::symlink_metadata(&self.path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            self.lost = false;
            return;
        }
        let path = self.path.display();
        match bind_in_place(&self.path) {
            Ok(listener) => {
                tracing::warn!("the socket {path} was removed and is back: find out what removed it");
                (self.listener, self.inode, self.lost) = (listener, inode(&self.path), false);
            }
            Err(error) if !self.lost => {
                tracing::error!(
                    "the socket {path} was removed and cannot be put back: {error}; Envoy cannot connect anew"
                );
                self.lost = true;
            }
            Err(_) => {}
        }
    }
}

/// Connections, with a pause after one that could not be taken (no file descriptor is left, say). tonic would try again at
/// once, for as long as that lasts, and tell nobody.
struct Patient<S> {
    incoming: S,
    pause: Option<Pin<Box<Sleep>>>,
    /// Whether the fault was told, and has not gone since.
    told: bool,
}

impl<S> Patient<S> {
    fn new(incoming: S) -> Self {
        Self { incoming, pause: None, told: false }
    }
}

impl<T, S: Stream<Item = io::Result<T>> + Unpin> Stream for Patient<S> {
    type Item = io::Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            let error = match ready!(Pin::new(&mut self.incoming).poll_next(context)) {
                Some(Err(error)) => error,
                taken => {
                    if std::mem::take(&mut self.told) {
                        tracing::info!("connections of Envoy are taken again");
                    }
                    return Poll::Ready(taken);
                }
            };
            // Whoever dialled is gone already.
            if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
                continue;
            }
            if !std::mem::replace(&mut self.told, true) {
                tracing::error!(
                    "a connection of Envoy's cannot be taken: {error}; those that are open go on, and it is tried again \
                     every {PAUSE:?}. If files are the matter, raise the limit of open files of this process"
                );
            }
            self.pause = Some(Box::pin(tokio::time::sleep(PAUSE)));
        }
    }
}

fn inode(path: &Path) -> Option<u64> {
    std::fs::symlink_metadata(path).ok().map(|file| file.ino())
}

impl Drop for Door {
    /// Takes our socket's file away, and nobody else's. The number is not given again while the listener is open.
    fn drop(&mut self) {
        if self.inode.is_some() && inode(&self.path) == self.inode {
            drop(std::fs::remove_file(&self.path));
        }
    }
}

impl Stream for Door {
    type Item = io::Result<UnixStream>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while self.look.poll_tick(context).is_ready() {
            self.restore();
        }
        self.listener.poll_accept(context).map(|accepted| Some(accepted.map(|(stream, _)| stream)))
    }
}

/// Serves until `shutdown` resolves, then until the open streams are over. `health` answers beside (gRPC health v1), for an
/// Envoy that checks the health of its cluster.
///
/// `largest_request` is the largest body cap of any server, in bytes.
///
/// # Errors
/// The transport fails, or the certificates cannot be used.
pub async fn serve(
    listener: Listener,
    tls: Option<Tls>,
    service: Service,
    health: HealthServer<impl Health>,
    largest_request: usize,
    shutdown: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    let router = router(tls, service, largest_request)?.add_service(health);
    match listener {
        Listener::Unix(listener, path) => {
            router.serve_with_incoming_shutdown(Patient::new(Door::new(listener, path)), shutdown).await
        }
        Listener::Tcp(listener) => {
            let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
            router.serve_with_incoming_shutdown(Patient::new(incoming), shutdown).await
        }
    }
}

fn router(tls: Option<Tls>, service: Service, largest_request: usize) -> Result<Router, tonic::transport::Error> {
    let mut server = Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .http2_max_pending_accept_reset_streams(Some(RESET_UNSEEN))
        // Counted over the whole life of a connection, of what crosses on the way as well: a limit would only say when
        // everybody's exchanges end. It is there for peers that do not read, and ours is Envoy.
        .http2_max_local_error_reset_streams(None)
        .http2_keepalive_interval(Some(Duration::from_secs(30)));
    if let Some(Tls { cert, key, client_ca }) = tls {
        let identity = Identity::from_pem(cert, key);
        let config = ServerTlsConfig::new().identity(identity).client_ca_root(Certificate::from_pem(client_ca));
        server = server.tls_config(config)?;
    }
    // Envoy's own limit may be above our cap; what lies between must still be decoded, so that our 413 answers it.
    let decode = largest_request.saturating_mul(2).max(8 << 20).saturating_add(64 << 10);
    let service =
        ExternalProcessorServer::new(service).max_decoding_message_size(decode).max_encoding_message_size(usize::MAX);
    Ok(server.add_service(service))
}
