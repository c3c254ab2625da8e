use std::net::IpAddr;

use super::Hosts;

#[test]
fn only_a_name_that_the_listener_has_is_answered() {
    let hosts = Hosts::new(&["Portcullis.internal".to_owned()]);
    let (loopback, pod): (IpAddr, IpAddr) = ([127, 0, 0, 1].into(), [10, 1, 2, 3].into());
    for (host, local, admitted) in [
        ("127.0.0.1:9003", loopback, true),
        ("127.0.0.1", loopback, true),
        ("[::1]:9003", loopback, true),
        ("localhost:9003", loopback, true),
        ("LOCALHOST", loopback, true),
        ("portcullis.internal", loopback, true),
        ("portcullis.INTERNAL:80", pod, true),
        ("10.1.2.3:9003", pod, true),
        // A kubelet reaches the pod's address; nobody reaches it as loopback.
        ("localhost", pod, false),
        ("127.0.0.1", pod, false),
        ("10.1.2.3", loopback, false),
        ("rebound.example", loopback, false),
        ("rebound.example:9003", loopback, false),
        ("127.0.0.1.example", loopback, false),
        ("127.0.0.1:9003@rebound.example", loopback, false),
        ("localhost.", loopback, false),
        ("127.0.0.1:port", loopback, false),
        ("127.0.0.1:99999", loopback, false),
        ("2130706433", loopback, false),
        ("[::1", loopback, false),
        ("[::1]x", loopback, false),
        ("::1", loopback, false),
        ("", loopback, false),
        (":9003", loopback, false),
    ] {
        assert_eq!(hosts.admit(host, local), admitted, "{host} on {local}");
    }
}
