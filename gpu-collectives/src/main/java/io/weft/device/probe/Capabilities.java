package io.weft.device.probe;

import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * All findings about a machine at one moment. Immutable.
 *
 * @param findings one for every capability, in their order
 */
public record Capabilities(Map<Capability, Finding> findings) {
  public Capabilities {
    Map<Capability, Finding> copy = new EnumMap<>(findings);
    for (Capability capability : Capability.values()) {
      if (!copy.containsKey(capability)) {
        throw new IllegalArgumentException("nothing was found out about " + capability);
      }
    }
    findings = Collections.unmodifiableMap(copy);
  }

  public boolean has(Capability capability) {
    return findings.get(capability).isAvailable();
  }

  /** What was found, or why the capability is not there. */
  public String reason(Capability capability) {
    return findings.get(capability).reason();
  }

  /** One line each: name, yes or no, reason. */
  public List<String> lines() {
    List<String> lines = new ArrayList<>();
    findings.forEach(
        (capability, finding) ->
            lines.add(
                String.format(
                    Locale.ROOT,
                    "%-14s %-4s %s",
                    capability,
                    finding.isAvailable() ? "yes" : "no",
                    finding.reason())));
    return lines;
  }

  /** What Weft does on such a machine, one line for each choice, with its reason. */
  public List<String> choices() {
    return List.of(
        choice(
            "ranks of one host",
            "shared memory in place",
            Capability.SHARED_MEMORY,
            "segments in the local folders, mapped as files"),
        choice(
            "ranks of several hosts",
            "sockets",
            Capability.NETWORK,
            "none: all ranks have to be on this host"),
        choice("data", "stays on the GPU", Capability.CUDA_DEVICES, "stays on the host"),
        choice(
            "ranks on GPUs",
            "NCCL",
            Capability.NCCL,
            "the host's collectives, through host memory"),
        choice("writes to all ranks", "NVLink multicast", Capability.MULTICAST, "host fan-out"));
  }

  private String choice(String what, String with, Capability capability, String without) {
    Finding finding = findings.get(capability);
    return what
        + ": "
        + (finding.isAvailable() ? with : without)
        + " ("
        + capability
        + ": "
        + finding.reason()
        + ")";
  }
}
