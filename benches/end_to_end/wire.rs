//! Just enough HTTP/1.1 on a kept connection to be cheaper than what is measured.

use std::io;

use tokio::net::TcpStream;

/// One connection.
pub(crate) struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
    piece: Vec<u8>,
}

/// A message that was read to its end.
pub(crate) struct Received {
    /// A response with status 200.
    pub(crate) ok: bool,
    /// Its first line.
    pub(crate) start: String,
    /// Bytes of the body, chunk framing included.
    pub(crate) body: usize,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(16 * 1024), piece: vec![0; 16 * 1024] })
    }

    pub(crate) async fn send(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.stream.try_write(bytes) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => self.stream.writable().await?,
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    /// The next message; nothing when the peer closed in between two.
    pub(crate) async fn receive(&mut self) -> io::Result<Option<Received>> {
        let head = loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                break at + 4;
            }
            match self.fill().await {
                Err(fault) if fault.kind() == io::ErrorKind::UnexpectedEof && self.buffer.is_empty() => {
                    return Ok(None);
                }
                filled => filled?,
            }
        };
        let chunked = find(&self.buffer[..head], b"\r\ntransfer-encoding: chunked\r\n").is_some();
        let end = if chunked { self.chunks(head).await? } else { head + length(&self.buffer[..head]) };
        while self.buffer.len() < end {
            self.fill().await?;
        }
        let ok = self.buffer.starts_with(b"HTTP/1.1 200");
        let line = if ok { 0 } else { find(&self.buffer, b"\r\n").unwrap_or(0) };
        let start = String::from_utf8_lossy(&self.buffer[..line]).into_owned();
        self.buffer.drain(..end);
        Ok(Some(Received { ok, start, body: end - head }))
    }

    /// Where the chunked body that begins at `at` ends; nobody here sends trailers.
    async fn chunks(&mut self, mut at: usize) -> io::Result<usize> {
        loop {
            let Some(line) = find(&self.buffer[at..], b"\r\n") else {
                self.fill().await?;
                continue;
            };
            let digits = std::str::from_utf8(&self.buffer[at..at + line]).map_err(io::Error::other)?;
            let size = usize::from_str_radix(digits, 16).map_err(io::Error::other)?;
            at += line + 2 + size + 2;
            if size == 0 {
                return Ok(at);
            }
            while self.buffer.len() < at {
                self.fill().await?;
            }
        }
    }

    async fn fill(&mut self) -> io::Result<()> {
        loop {
            match self.stream.try_read(&mut self.piece) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    self.buffer.extend_from_slice(&self.piece[..read]);
                    return Ok(());
                }
                Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => self.stream.readable().await?,
                Err(fault) => return Err(fault),
            }
        }
    }
}

/// Envoy writes header names in lower case.
fn length(head: &[u8]) -> usize {
    const NAME: &[u8] = b"\r\ncontent-length: ";
    let Some(at) = find(head, NAME) else { return 0 };
    let digits = head[at + NAME.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |length, digit| length * 10 + usize::from(digit - b'0'))
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
