//! How large the buffers of one stream are: its share of the memory of an open subscription.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

/// Bytes that a message of Envoy's is read into; a longer one makes it grow. A usual head of a request, twice: tonic reserves
/// a message's length again once it is there.
const READ: usize = 4 * 1024;
/// Bytes that our replies are written into; a longer one makes it grow.
const WRITE: usize = 1024;
/// Bytes of replies that are sent in one go.
const YIELD: usize = 32 * 1024;

/// Messages of the front door. Both buffers live as long as the stream, however little it says: tonic's own codec gives each
/// 8 KiB, more than all else that is kept of an idle subscription.
#[derive(Clone, Copy, Debug)]
pub struct DoorCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for DoorCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for DoorCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = ProstDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::raw_encoder(BufferSettings::new(WRITE, YIELD))
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<T, U>::raw_decoder(BufferSettings::new(READ, YIELD))
    }
}
