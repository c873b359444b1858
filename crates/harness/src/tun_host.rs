// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host of this kernel that sends to a [`Peer`]: a namespace with a TUN device, behind which this program is.

use crate::alone::NETWORK;
use crate::peer::Peer;
use crate::wire::ip;
use anyhow::{Result, bail};
use fatpath_emulator::{Namespace, Tun, remove_namespace};
use rustix::net::sockopt::set_socket_linger;
use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::time::Duration;

const KERNEL_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 78, 255, 1);

/// The namespace, and a listening socket in it; removed when it is dropped.
pub struct TunHost {
    namespace: Namespace,
    tun: Tun,
    listener: TcpListener,
    at: SocketAddrV4,
}

impl TunHost {
    /// Its peers have addresses in 10.78.0.0/16.
    pub fn make() -> Result<TunHost> {
        let namespace = Namespace::create(&format!("{NETWORK}-client"))?;
        let tun = namespace.run(|| Tun::open("peer"))??;
        ip(
            &namespace,
            &format!("addr add {KERNEL_ADDRESS}/16 dev peer"),
        )?;
        ip(&namespace, "link set peer txqueuelen 100000 up")?;
        let listener = namespace.run(|| TcpListener::bind((KERNEL_ADDRESS, 0)))??;
        let SocketAddr::V4(at) = listener.local_addr()? else {
            bail!("no IPv4 address")
        };
        Ok(TunHost {
            namespace,
            tun,
            listener,
            at,
        })
    }

    /// A connection from a peer of that address, to which the kernel has begun to send.
    pub fn flow(&self, peer: Ipv4Addr) -> Result<Flow<'_>> {
        let peer = Peer::connect(&self.tun, peer, self.at)?;
        let sender = self.listener.accept()?.0;
        sender.set_nonblocking(true)?;
        // What was not acknowledged is not to be sent again after the end.
        set_socket_linger(&sender, Some(Duration::ZERO))?;
        let mut flow = Flow { peer, sender };
        flow.fill()?;
        Ok(flow)
    }
}

impl Drop for TunHost {
    fn drop(&mut self) {
        // The next run takes away what is left.
        let _ = remove_namespace(self.namespace.name());
    }
}

/// A connection, both of its ends.
pub struct Flow<'h> {
    /// The receiver.
    pub peer: Peer<'h>,
    sender: TcpStream,
}

impl Flow<'_> {
    /// Always more to send than the window lets go.
    pub fn fill(&mut self) -> Result<()> {
        let data = [0; 1 << 16];
        loop {
            let written = self.sender.write(&data);
            self.peer.receive()?;
            match written {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
