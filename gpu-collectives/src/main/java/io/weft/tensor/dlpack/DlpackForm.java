package io.weft.tensor.dlpack;

/** The two structures of DLPack. */
public enum DlpackForm {
  /**
   * {@code DLManagedTensor}, which all consumers accept, and which cannot express that it is
   * read-only.
   */
  PLAIN("dltensor"),

  /** {@code DLManagedTensorVersioned} of DLPack 1.0. */
  VERSIONED("dltensor_versioned");

  private final String capsule;

  DlpackForm(String capsule) {
    this.capsule = capsule;
  }

  /** The required name of a Python capsule with its address. */
  public String capsule() {
    return capsule;
  }
}
