//! What Envoy has seen of an exchange, and what it must never see.

/// The kinds of replies, however they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    RequestHeaders {
        decided: bool,
    },
    RequestBody {
        decided: bool,
    },
    ResponseHeaders,
    ResponseBody {
        ends: bool,
    },
    ResponseTrailers,
    MoreTime,
    /// With the second lock's word.
    Immediate {
        decided: bool,
    },
}

/// Replies so far.
#[derive(Debug, Default)]
pub struct Seen {
    pub request_headers: usize,
    /// Continues with `decided: true`.
    pub decided: usize,
    pub immediate: usize,
    pub head: usize,
    pub last_byte: usize,
}

impl Seen {
    pub fn take(&mut self, told: Told) {
        assert_eq!(self.immediate, 0, "{told:?} after an answer in the server's place");
        assert_eq!(self.last_byte, 0, "{told:?} after the last byte");
        match told {
            Told::RequestHeaders { decided } => {
                assert_eq!((self.request_headers, self.decided, self.head), (0, 0, 0), "{told:?}");
                self.request_headers += 1;
                self.decided += usize::from(decided);
            }
            Told::RequestBody { decided } => {
                assert_eq!((self.request_headers, self.decided, self.head), (1, 0, 0), "{told:?}");
                assert!(decided, "a call is forwarded undecided");
                self.decided += 1;
            }
            Told::Immediate { decided } => {
                assert_eq!(self.head, 0, "the status has gone down");
                assert!(decided, "an answer of ours does not pass the second lock");
                self.immediate += 1;
            }
            Told::MoreTime => assert_eq!((self.decided, self.head), (0, 0), "more time for what is decided"),
            Told::ResponseHeaders => {
                assert_eq!(self.head, 0, "{told:?}");
                self.head += 1;
            }
            Told::ResponseBody { ends } => {
                assert_eq!(self.head, 1, "{told:?}");
                self.last_byte += usize::from(ends);
            }
            Told::ResponseTrailers => {
                assert_eq!(self.head, 1, "{told:?}");
                self.last_byte += 1;
            }
        }
    }

    /// Whether the stream may end with OK: everything that is owed was said. `head_ends`: the head that came last has no
    /// body behind it.
    pub fn may_finish(&self, head_ends: bool) -> bool {
        self.immediate == 1
            || self.last_byte == 1
            || (self.head == 1 && head_ends)
            || (self.head == 0 && self.decided == 1)
    }
}
