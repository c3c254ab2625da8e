//! How the gRPC stack reads events and writes replies.

use bytes::Buf as _;
use tonic::Status;
use tonic::codec::{BufferSettings, DecodeBuf, Decoder, EncodeBuf, Encoder};

use crate::exchange::{Event, Reply};

use super::{read, write};

/// Bytes that a message of Envoy's is read into; a longer one makes it grow. A usual head of a request, twice: tonic reserves a
/// message's length again once it is there. An idle subscription keeps both buffers, and tonic's own choice is 8 KiB each.
const READ: usize = 4 * 1024;
/// Bytes that replies are written into; a longer one makes it grow.
const WRITE: usize = 1024;
/// Bytes of replies that are sent in one go.
const YIELD: usize = 32 * 1024;

/// Reads what Envoy says as an [`Event`], and writes a [`Reply`] as Envoy reads it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Codec;

impl tonic::codec::Codec for Codec {
    type Encode = Reply;
    type Decode = Event;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Codec {
    type Item = Reply;
    type Error = Status;

    fn encode(&mut self, reply: Reply, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        let message = write::Message::of(&reply);
        out.reserve(message.len());
        message.write(out);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(WRITE, YIELD)
    }
}

impl Decoder for Codec {
    type Item = Event;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Event>, Status> {
        let bytes = from.copy_to_bytes(from.remaining());
        // The stream ends with this, so that Envoy refuses what it belongs to.
        let read = read::event(&bytes).map_err(|_| Status::internal("the message is not one that Envoy sends"));
        read.map(Some)
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(READ, YIELD)
    }
}
