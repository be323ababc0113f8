//! A SOCKS5 proxy (RFC 1928) that leads every name to one address.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// The running proxy.
pub(crate) struct Socks {
    /// Its address, for a variable.
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Socks {
    pub(crate) fn leading_to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("socks5://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let known = Arc::clone(&asked);
        thread::spawn(move || {
            for client in listener.incoming() {
                let known = Arc::clone(&known);
                thread::spawn(move || serve(client.unwrap(), target, &known));
            }
        });
        Self { url, asked }
    }

    /// The names and ports that were asked for.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(mut client: TcpStream, target: SocketAddr, asked: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut methods = [0; 2];
    client.read_exact(&mut methods)?;
    client.read_exact(&mut vec![0; methods[1].into()])?;
    client.write_all(&[5, 0])?;
    // A connection to a name.
    let mut request = [0; 5];
    client.read_exact(&mut request)?;
    assert_eq!(request[..4], [5, 1, 0, 3], "the proxy looks names up");
    let mut name = vec![0; request[4].into()];
    client.read_exact(&mut name)?;
    let mut port = [0; 2];
    client.read_exact(&mut port)?;
    asked.lock().unwrap().push(format!("{}:{}", String::from_utf8(name).unwrap(), u16::from_be_bytes(port)));
    let mut server = TcpStream::connect(target)?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
    let (mut back, mut forth) = (server.try_clone()?, client.try_clone()?);
    thread::spawn(move || io::copy(&mut back, &mut forth));
    io::copy(&mut client, &mut server).map(drop)
}
