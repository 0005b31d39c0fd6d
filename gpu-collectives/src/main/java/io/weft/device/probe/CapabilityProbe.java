package io.weft.device.probe;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.EnumMap;
import java.util.Map;

/**
 * Finds the capabilities of the machine. A part that fails is a "no" with the failure as its
 * reason.
 */
public final class CapabilityProbe {
  private CapabilityProbe() {}

  /** Holds the findings of this process, made at first use. */
  private static final class ThisMachine {
    private static final Capabilities FOUND = run(ProbeOptions.defaults());
  }

  /**
   * The capabilities of this machine. All code of this process that selects a path uses this
   * record; the first call probes.
   */
  public static Capabilities thisMachine() {
    return ThisMachine.FOUND;
  }

  /** The probe of one capability. */
  interface Part {
    Finding find() throws IOException;
  }

  /** Probes all capabilities. This takes milliseconds, up to a second if a library must be read. */
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
      return Finding.no("the probe failed: " + e);
    }
  }
}
