package io.weft.host;

import java.security.SecureRandom;
import java.util.HexFormat;

/** Names of files and folders, and the random parts of them. */
final class Names {
  static final String ALIVE = "alive";
  static final String TOKEN = "token";
  static final String LEASE_PREFIX = "lease-";

  /** A folder or lease that is not complete yet; others leave it alone unless it is old. */
  static final String STARTING_PREFIX = ".starting-";

  private static final SecureRandom RANDOM = new SecureRandom();

  private Names() {}

  /** As part of a file name: everything but letters, digits, '.', '_' and '-' becomes '_'. */
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
