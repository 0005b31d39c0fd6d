package io.weft.spark.columns;

import java.util.Arrays;

/** A list of addresses or other numbers that grows and is mostly used as a stack. */
final class AddressList {
  private long[] addresses = new long[16];
  private int size;

  int size() {
    return size;
  }

  long get(int index) {
    return addresses[index];
  }

  void add(long address) {
    if (size == addresses.length) {
      addresses = Arrays.copyOf(addresses, 2 * size);
    }
    addresses[size++] = address;
  }

  long removeLast() {
    return addresses[--size];
  }

  void clear() {
    size = 0;
  }
}
