package io.weft.host;

import java.security.SecureRandom;
import java.util.HexFormat;

/** Names of files and folders, with their random parts. */
final class Names {
  static final String ALIVE = "alive";
  static final String TOKEN = "token";
  static final String LEASE_PREFIX = "lease-";

  /** Prefix of an incomplete folder or lease. Sweeps ignore it unless it is old. */
  static final String STARTING_PREFIX = ".starting-";

  private static final SecureRandom RANDOM = new SecureRandom();

  private Names() {}

  /** Makes a name safe for files: replaces all but letters, digits, '.', '_' and '-' by '_'. */
  static String sanitized(String name) {
    String safe = name.replaceAll("[^A-Za-z0-9._-]", "_");
    return safe.startsWith(".") ? "_" + safe.substring(1) : safe;
  }

  static String leasePrefix(int shuffleId) {
    return LEASE_PREFIX + shuffleId + "-";
  }

  static String randomHex(int characters) {
    byte[] bytes = new byte[(characters + 1) / 2];
    RANDOM.nextBytes(bytes);
    return HexFormat.of().formatHex(bytes).substring(0, characters);
  }
}
