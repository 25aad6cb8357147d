//! Selection of one of several sockets at the same port for each packet (SO_REUSEPORT).

use nix::libc::{
    BPF_ABS, BPF_ALU, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_MOD, BPF_RET, BPF_W, sock_filter,
    sock_fprog,
};
use nix::sys::socket::{setsockopt, sockopt::AttachReusePortCbpf};
use socket2::Socket;

/// `BPF_A`, which `libc` lacks: the return value is in the accumulator.
const BPF_A: u32 = 0x10;
/// Position of the verification tag in the UDP payload (RFC 9260 §3.1).
const TAG: u32 = 4;

/// Makes the system deliver each packet to the socket whose number, in the order of binding, is the
/// verification tag modulo `count`. For an INIT, which has the tag 0, the system selects a socket
/// by addresses and ports. A system without this option selects the socket in that way for all
/// packets, and each driver passes the packets of other drivers on.
pub(super) fn steer(socket: &Socket, count: u32) {
    let mut program = program(count);
    let whole = sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    if let Err(error) = setsockopt(socket, AttachReusePortCbpf, &whole) {
        tracing::warn!(%error, "the system does not steer packets by their tags");
    }
}

fn program(count: u32) -> [sock_filter; 5] {
    let step = |code: u32, k: u32, jt: u8| sock_filter {
        code: code as u16,
        jt,
        jf: 0,
        k,
    };
    [
        step(BPF_LD | BPF_W | BPF_ABS, TAG, 0),
        step(BPF_JMP | BPF_JEQ | BPF_K, 0, 2),
        step(BPF_ALU | BPF_MOD | BPF_K, count, 0),
        step(BPF_RET | BPF_A, 0, 0),
        // An invalid socket number, for which the system selects a socket.
        step(BPF_RET | BPF_K, u32::MAX, 0),
    ]
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    /// Tests the byte order of the filter, and the numbering of the sockets.
    #[test]
    fn packets_come_to_the_socket_of_their_tag() {
        let open = |port: u16| {
            let socket = Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None);
            let socket = socket.expect("a socket");
            // The first socket is bound without sharing, so that the port is not in use by another
            // test.
            socket.set_reuse_port(port != 0).expect("Linux");
            let at = std::net::SocketAddr::from(([127, 0, 0, 1], port));
            socket.bind(&at.into()).expect("loopback");
            socket.set_reuse_port(true).expect("Linux");
            socket
        };
        let first = open(0);
        let at = first.local_addr().expect("bound").as_socket().expect("IP");
        let others = [open(at.port()), open(at.port())];
        steer(&first, 3);
        let sockets: Vec<UdpSocket> = [first].into_iter().chain(others).map(Into::into).collect();
        let sender = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        for socket in &sockets {
            socket.set_nonblocking(true).expect("a socket");
        }
        for tag in [1_u32, 2, 3, 4, 0x8000_0001, u32::MAX, u32::MAX - 1] {
            let packet = [[0, 1, 0, 2], tag.to_be_bytes(), [0; 4]].concat();
            sender.send_to(&packet, at).expect("loopback");
            let came: Vec<bool> = (sockets.iter())
                .map(|it| it.recv(&mut [0; 64]).is_ok())
                .collect();
            let expected: Vec<bool> = (0..3).map(|number| number == tag % 3).collect();
            assert_eq!(came, expected, "tag {tag}");
        }
        // All INITs of a peer arrive at the same socket.
        let packet = [[0, 1, 0, 2], [0; 4], [0; 4]].concat();
        let mut came = [0; 3];
        for _ in 0..20 {
            sender.send_to(&packet, at).expect("loopback");
            for (count, socket) in came.iter_mut().zip(&sockets) {
                *count += u32::from(socket.recv(&mut [0; 64]).is_ok());
            }
        }
        came.sort_unstable();
        assert_eq!(came, [0, 0, 20]);
    }
}
