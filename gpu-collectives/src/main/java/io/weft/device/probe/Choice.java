package io.weft.device.probe;

/**
 * A choice of Weft that depends on the machine.
 *
 * @param what the subject, such as "ranks of one host"
 * @param isPreferred whether it is the best way and not a fallback
 * @param how the way that is used
 * @param reason the capability and its finding
 */
public record Choice(String what, boolean isPreferred, String how, String reason) {
  /** A text such as "ranks of several hosts: sockets (network: interfaces eth0)". */
  @Override
  public String toString() {
    return what + ": " + how + " (" + reason + ")";
  }
}
