//! A proxy between client and server that counts requests and damages them by a plan.
//!
//! It speaks as little HTTP as possible: one request per connection, heads passed on unchanged, so
//! that signatures stay valid. A thread per connection, because there are few and they mostly wait.

mod http;
mod plan;

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use chunkyard_store::Store;

use self::http::Request;
pub(crate) use self::plan::{Harm, Plan, STALL, TIMEOUT};

/// A running proxy. It ends with the process.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: String,
    plan: Mutex<Plan>,
    log: Mutex<Vec<String>>,
    harmed: AtomicUsize,
}

impl Proxy {
    /// Starts a proxy before the server of the tests.
    pub(crate) fn start(plan: Plan) -> Self {
        let endpoint = std::env::var("AWS_ENDPOINT_URL").expect("run `make test-s3`");
        let server = endpoint.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            server,
            plan: Mutex::new(plan),
            log: Mutex::default(),
            harmed: AtomicUsize::new(0),
        });
        let of_thread = shared.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let shared = of_thread.clone();
                // Broken connections are the purpose: the client will notice.
                std::thread::spawn(move || shared.serve(connection).ok());
            }
        });
        Self { address, shared }
    }

    /// The store at `url`, reached through the proxy.
    pub(crate) fn open(&self, url: &str, values: &[(&str, &str)]) -> Store {
        let endpoint = format!("http://{}", self.address);
        let mut all = vec![("endpoint", endpoint.as_str())];
        all.extend_from_slice(values);
        super::open(url, &all)
    }

    /// The requests since the last call, as `METHOD path`, in the order in which they came.
    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.log.lock().unwrap())
    }

    /// How many requests came to harm.
    pub(crate) fn harmed(&self) -> usize {
        self.shared.harmed.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let Some(request) = Request::read(&mut client)? else { return Ok(()) };
        let harm = self.plan.lock().unwrap().next(&request.line());
        self.log.lock().unwrap().push(request.line());
        if harm.is_some() {
            self.harmed.fetch_add(1, Ordering::Relaxed);
        }
        // Returning closes the connection, which is what a client sees of a lost request or reply.
        match harm {
            None => client.write_all(&request.forward(&self.server)?),
            Some(Harm::LoseRequest) => Ok(()),
            Some(Harm::LoseReply) => request.forward(&self.server).map(drop),
            Some(Harm::HoldReply) => {
                request.forward(&self.server)?;
                std::thread::sleep(STALL);
                Ok(())
            }
            Some(Harm::DelayRequest(time)) => {
                std::thread::sleep(time);
                request.forward(&self.server).map(drop)
            }
            Some(Harm::Answer(status)) => client.write_all(http::answer(status).as_bytes()),
            Some(Harm::ForwardAndAnswer(status)) => {
                request.forward(&self.server)?;
                client.write_all(http::answer(status).as_bytes())
            }
            Some(Harm::CutReply) => {
                let reply = request.forward(&self.server)?;
                client.write_all(&reply[..http::middle(&reply)])
            }
        }
    }
}
