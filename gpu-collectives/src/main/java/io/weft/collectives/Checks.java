package io.weft.collectives;

/**
 * Argument checks that several operations share. All throw a {@link CollectiveException} of kind
 * INVALID.
 */
final class Checks {
  private Checks() {}

  static void rank(OperationKind kind, String role, int rank, int nranks) {
    if (rank < 0 || rank >= nranks) {
      throw CollectiveException.invalid(
          kind + ": " + role + " " + rank + " is not a rank of 0 to " + (nranks - 1));
    }
  }

  static void sameType(OperationKind kind, TypedBuffer send, TypedBuffer receive) {
    if (send.type() != receive.type()) {
      throw CollectiveException.invalid(
          kind + ": sends " + send.type() + " but receives " + receive.type());
    }
  }

  /** The receive buffer has to hold exactly this many elements. */
  static void count(OperationKind kind, String buffer, TypedBuffer actual, long expected) {
    if (actual.count() != expected) {
      throw CollectiveException.invalid(
          kind
              + ": the "
              + buffer
              + " buffer has "
              + actual.count()
              + " elements; it needs "
              + expected);
    }
  }

  /**
   * Checks that the buffers do not overlap, or that the smaller one is exactly at its place in the
   * larger one.
   */
  static void apartOrAt(
      OperationKind kind, TypedBuffer part, TypedBuffer whole, long placeInWhole) {
    boolean inPlace = part.address() == whole.address() + placeInWhole * whole.type().bytes();
    if (part.overlaps(whole) && !inPlace) {
      throw CollectiveException.invalid(
          kind
              + ": the buffers overlap ("
              + part
              + ", "
              + whole
              + "); an operation in place needs element "
              + "0 of the first at element "
              + placeInWhole
              + " of the second");
    }
  }

  static void apart(OperationKind kind, TypedBuffer send, TypedBuffer receive) {
    if (send.overlaps(receive)) {
      throw CollectiveException.invalid(
          kind + " does not run in place, but the buffers overlap: " + send + ", " + receive);
    }
  }
}
