package io.weft.tests.system;

/** Encrypted disks with executors that read files on each other's disks in place. */
class EncryptedDisksInPlaceTest extends EncryptedDisksContract {
  EncryptedDisksInPlaceTest() {
    super("shm");
  }
}
