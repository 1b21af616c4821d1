//! A client and a server with the official Rust SDK: clients/stranger.mjs uses the
//! one, servers/strangers_test.go the other.
//!
//!     strangers client http|stdio REVISION TARGET…
//!     strangers server stdio
//!     strangers server http PORT
#![allow(deprecated)] // sampling, roots and logs, which are still to be spoken

mod client;
mod server;

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["client", transport, revision, target @ ..] => client::main(transport, revision, target).await,
        ["server", rest @ ..] => server::main(rest).await,
        _ => panic!("neither client nor server"),
    }
}
