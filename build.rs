//! Compiles the contracts in `proto/` without a system `protoc`.

/// Byte fields of the front door's messages that share the received buffer, or a constant, instead of owning a copy.
/// Bodies are not among them: they become text that is owned.
const SHARED: [&str; 5] = ["HeaderValue", "HeaderToSet", "HeaderMutation", "Field", "Value"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let ours = protox::compile(["portcullis/audit/v1/audit.proto", "portcullis/gate/v1/gate.proto"], ["proto"])?;
    tonic_prost_build::configure().compile_fds(ours)?;
    let door = protox::compile(["door/ext_proc.proto"], ["proto"])?;
    let mut builder = tonic_prost_build::configure().build_client(false).codec_path("crate::extproc::codec::DoorCodec");
    for message in SHARED {
        builder = builder.bytes(format!(".envoy.service.ext_proc.v3.{message}"));
    }
    builder.compile_fds(door)?;
    Ok(())
}
