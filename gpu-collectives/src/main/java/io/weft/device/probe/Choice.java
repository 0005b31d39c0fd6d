package io.weft.device.probe;

/**
 * What Weft does in one respect because of what a machine has or lacks.
 *
 * @param what is chosen, such as "ranks of one host"
 * @param isPreferred whether it is what one would wish for rather than what is left
 * @param how it is done
 * @param reason the capability and what was found
 */
public record Choice(String what, boolean isPreferred, String how, String reason) {
  /** Such as "ranks of several hosts: sockets (network: interfaces eth0)". */
  @Override
  public String toString() {
    return what + ": " + how + " (" + reason + ")";
  }
}
