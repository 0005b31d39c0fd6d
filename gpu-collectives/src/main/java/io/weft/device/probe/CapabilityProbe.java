package io.weft.device.probe;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.EnumMap;
import java.util.Map;

/** Finds out what the machine can do. A part that fails is a "no" with what it failed of. */
public final class CapabilityProbe {
  private CapabilityProbe() {}

  /** Found out when it is first asked for. */
  private static final class ThisMachine {
    private static final Capabilities FOUND = run(ProbeOptions.defaults());
  }

  /**
   * What this machine can do, the same record for everything in this process that chooses a path;
   * the first call probes.
   */
  public static Capabilities thisMachine() {
    return ThisMachine.FOUND;
  }

  /** One capability's part of the probe. */
  interface Part {
    Finding find() throws IOException;
  }

  /** Looks at everything; takes milliseconds, up to a second where a library has to be read. */
  public static Capabilities run(ProbeOptions options) {
    HostProbe host = new HostProbe(options);
    CudaProbe cuda = new CudaProbe(options);
    NcclProbe nccl = new NcclProbe(options);
    Map<Capability, Finding> findings = new EnumMap<>(Capability.class);
    findings.put(Capability.SHARED_MEMORY, finding(host::sharedMemory));
    findings.put(Capability.HUGE_PAGES, finding(host::hugePages));
    findings.put(Capability.PROCESSORS, finding(host::processors));
    findings.put(Capability.NETWORK, finding(host::network));
    findings.put(Capability.RDMA, finding(host::rdma));
    findings.put(Capability.CUDA_DRIVER, finding(cuda::driver));
    findings.put(Capability.CUDA_DEVICES, finding(cuda::devices));
    findings.put(Capability.NCCL, finding(nccl::library));
    findings.put(Capability.JNA, finding(JnaProbe::library));
    findings.put(Capability.PEER_ACCESS, finding(cuda::peerAccess));
    findings.put(Capability.MULTICAST, finding(cuda::multicast));
    return new Capabilities(options.sharedFolder(), findings);
  }

  static Finding finding(Part part) {
    try {
      return part.find();
    } catch (IOException | UncheckedIOException | SecurityException | IllegalStateException e) {
      return Finding.no("asking for it failed: " + e);
    }
  }
}
