package io.weft.tests.system;

/** Encrypted disks where executors read what lies on the disks of the others in place. */
class EncryptedDisksInPlaceTest extends EncryptedDisksContract {
  EncryptedDisksInPlaceTest() {
    super("shm");
  }
}
