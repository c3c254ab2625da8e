//! Compiles the contracts in `proto/` without a system `protoc`, and the gRPC service that Envoy calls.

use tonic_build::manual::{Builder, Method, Service};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed=build.rs");
    let ours = protox::compile(["portcullis/audit/v1/audit.proto", "portcullis/gate/v1/gate.proto"], ["proto"])?;
    tonic_prost_build::configure().compile_fds(ours)?;
    // Envoy's service, with messages that are read and written by hand: see `src/extproc/wire.rs`.
    let process = Method::builder()
        .name("process")
        .route_name("Process")
        .input_type("crate::exchange::Event")
        .output_type("crate::exchange::Reply")
        .codec_path("crate::extproc::wire::Codec")
        .client_streaming()
        .server_streaming()
        .build();
    let door = Service::builder()
        .name("ExternalProcessor")
        .package("envoy.service.ext_proc.v3")
        .comment("Envoy's external processing: one stream for each HTTP request.")
        .method(process)
        .build();
    Builder::new().build_client(false).compile(&[door]);
    Ok(())
}
