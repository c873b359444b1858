// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two hosts on one wire: namespaces and a veth pair, with TSO as veth has it.

use crate::alone::{Alone, NETWORK};
use anyhow::{Context, Result, ensure};
use fatpath_emulator::{Namespace, remove_namespace};
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

/// The client's address.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
/// The server's.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 2);
const OFF: &str = "tx-udp-segmentation off tso off gso off gro off";

/// The two hosts; removed when it is dropped.
pub struct Wire {
    /// Its device is `to-server`.
    pub client: Namespace,
    /// Its device is `to-client`.
    pub server: Namespace,
}

impl Wire {
    /// Lays it, on a host that is ours alone.
    pub fn lay(_: &Alone) -> Result<Wire> {
        let wire = Wire {
            client: Namespace::create(&format!("{NETWORK}-client"))?,
            server: Namespace::create(&format!("{NETWORK}-server"))?,
        };
        let peer = wire.server.name();
        let pair = format!("link add to-server type veth peer name to-client netns {peer}");
        ip(&wire.client, &pair)?;
        ip(&wire.client, &format!("addr add {CLIENT}/24 dev to-server"))?;
        ip(&wire.server, &format!("addr add {SERVER}/24 dev to-client"))?;
        ip(&wire.client, "link set to-server up")?;
        ip(&wire.server, "link set to-client up")?;
        Ok(wire)
    }

    /// Switches the segmentation of large packets by the devices off, and the joining of small ones: the kernel hands each
    /// segment over by itself.
    pub fn switch_segmentation_off(&self) -> Result<()> {
        for (host, device) in [(&self.client, "to-server"), (&self.server, "to-client")] {
            let mut command = host.command("ethtool");
            command.args(["-K", device]).args(OFF.split(' '));
            let status = command
                .status()
                .context("ethtool: apt-get install ethtool")?;
            ensure!(status.success(), "ethtool -K {device}: {status}");
        }
        Ok(())
    }

    /// A connection from the client to the server: both ends.
    pub fn connection(&self) -> Result<(TcpStream, TcpStream)> {
        let listener = self.server.run(|| TcpListener::bind((SERVER, 0)))??;
        let address = listener.local_addr()?;
        let sender = self.client.run(|| TcpStream::connect(address))??;
        Ok((sender, listener.accept()?.0))
    }

    /// The client's namespace as the kernel half wants it.
    pub fn client_file(&self) -> Result<File> {
        Ok(File::open(format!("/run/netns/{}", self.client.name()))?)
    }
}

/// Runs `ip ARGUMENTS` there.
pub fn ip(host: &Namespace, arguments: &str) -> Result<()> {
    let status = host.command("ip").args(arguments.split(' ')).status()?;
    ensure!(status.success(), "ip {arguments}: {status}");
    Ok(())
}

impl Drop for Wire {
    fn drop(&mut self) {
        // The next run takes away what is left.
        for host in [&self.client, &self.server] {
            let _ = remove_namespace(host.name());
        }
    }
}
