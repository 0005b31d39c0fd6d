package io.weft.transfers;

import io.weft.collectives.nccl.NcclLibrary;
import io.weft.device.UnavailableLibraryException;
import io.weft.device.cuda.CudaLibrary.GpuDescription;
import io.weft.shuffle.peer.GpuEnd;
import io.weft.shuffle.peer.PathRules;
import io.weft.shuffle.peer.TransportMode;

/** A path between GPUs that a test uses, and the configuration that selects it. */
enum GpuPath {
  /** Both executors have NCCL. */
  NCCL,
  /** Both run on one kernel, without NCCL. */
  IPC,
  /** The user has turned off both. */
  STAGED;

  /** Why two executors here would not use this path; empty if they would. */
  String whyNot() {
    if (this != NCCL) {
      return "";
    }
    try {
      NcclLibrary nccl = NcclLibrary.load(TestGpus.options());
      return TestGpus.count() > 1 || nccl.sharesGpus(TestGpus.options().environment())
          ? ""
          : "there is one GPU, and " + nccl + " does not let two ranks share it";
    } catch (UnavailableLibraryException e) {
      return e.getMessage();
    }
  }

  /** NCCL is for one GPU only if its executors cannot map each other's memory. */
  String kernel(int executor) {
    boolean shares =
        this == NCCL
            && NcclLibrary.load(TestGpus.options()).sharesGpus(TestGpus.options().environment());
    return shares ? "kernel " + executor : "a kernel";
  }

  PathRules rules() {
    return new PathRules(this == STAGED ? TransportMode.SHM : TransportMode.AUTO, false, false);
  }

  /** A GPU as its executor announces it. Loads NCCL only if the path needs it. */
  GpuEnd end(GpuDescription gpu) {
    String uuid = gpu.uuid().toString();
    if (this != NCCL) {
      return new GpuEnd(uuid, gpu.ordinal(), gpu.name(), "", "this test is about another path");
    }
    NcclLibrary nccl = NcclLibrary.load(TestGpus.options());
    return GpuEnd.of(uuid, gpu.ordinal(), gpu.name(), nccl.version())
        .sharing(nccl.sharesGpus(TestGpus.options().environment()));
  }
}
