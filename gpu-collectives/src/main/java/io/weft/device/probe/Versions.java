package io.weft.device.probe;

/** Compares versions, which are numbers between dots. */
final class Versions {
  private Versions() {}

  /** Compares number by number; a missing number is zero. */
  static boolean isAtLeast(String version, String oldest) {
    String[] have = version.split("\\.");
    String[] need = oldest.split("\\.");
    for (int i = 0; i < Math.max(have.length, need.length); i++) {
      int difference = number(have, i) - number(need, i);
      if (difference != 0) {
        return difference > 0;
      }
    }
    return true;
  }

  private static int number(String[] numbers, int index) {
    return index < numbers.length ? Integer.parseInt(numbers[index]) : 0;
  }
}
