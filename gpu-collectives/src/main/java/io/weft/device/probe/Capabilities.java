package io.weft.device.probe;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;

/**
 * All findings about a machine at one time. Immutable.
 *
 * @param sharedFolder the folder for segments in shared memory, if there is any
 * @param findings one for every capability, in their order
 */
public record Capabilities(Path sharedFolder, Map<Capability, Finding> findings) {
  public Capabilities {
    Map<Capability, Finding> copy = new EnumMap<>(findings);
    for (Capability capability : Capability.values()) {
      if (!copy.containsKey(capability)) {
        throw new IllegalArgumentException("there is no finding about " + capability);
      }
    }
    findings = Collections.unmodifiableMap(copy);
  }

  /** A copy with one finding replaced, for a machine with other capabilities. */
  public Capabilities with(Capability capability, Finding finding) {
    Map<Capability, Finding> other = new EnumMap<>(findings);
    other.put(capability, finding);
    return new Capabilities(sharedFolder, other);
  }

  public boolean has(Capability capability) {
    return findings.get(capability).isAvailable();
  }

  /** The finding, or the reason why the capability is missing. */
  public String reason(Capability capability) {
    return findings.get(capability).reason();
  }

  /** One line for each capability: name, yes or no, reason. */
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

  /** What Weft does on this machine: one line for each choice, with its reason. */
  public List<String> choices() {
    return Stream.of(
            withinHost(),
            betweenHosts(),
            choice(
                "data",
                Capability.CUDA_DEVICES,
                "on the host, because shuffles do not carry device memory yet",
                "stays on the host"),
            betweenGpus())
        .map(Choice::toString)
        .toList();
  }

  /** The place of the segments through which ranks of one host communicate. */
  public Choice withinHost() {
    return choice(
        "ranks of one host",
        Capability.SHARED_MEMORY,
        "shared memory in place, in " + sharedFolder,
        "segments in the local folders, mapped as files");
  }

  /** Whether ranks of several hosts can communicate. */
  public Choice betweenHosts() {
    return choice(
        "ranks of several hosts",
        Capability.NETWORK,
        "sockets",
        "none: all ranks must be on this host");
  }

  /** What communicators of ranks on GPUs use; the reason names the first missing capability. */
  public Choice betweenGpus() {
    Capability decisive =
        Stream.of(Capability.CUDA_DEVICES, Capability.JNA, Capability.NCCL)
            .filter(capability -> !has(capability))
            .findFirst()
            .orElse(Capability.NCCL);
    return choice(
        "ranks on GPUs",
        decisive,
        "NCCL, where its communicators are requested",
        "the host's collectives, through host memory");
  }

  private Choice choice(String what, Capability capability, String with, String without) {
    Finding finding = findings.get(capability);
    return new Choice(
        what,
        finding.isAvailable(),
        finding.isAvailable() ? with : without,
        capability + ": " + finding.reason());
  }
}
