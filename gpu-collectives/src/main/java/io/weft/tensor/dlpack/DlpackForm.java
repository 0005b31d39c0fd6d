package io.weft.tensor.dlpack;

/** The two structures of DLPack. */
public enum DlpackForm {
  /**
   * {@code DLManagedTensor}, which all consumers take, and which cannot say that it is read-only.
   */
  PLAIN("dltensor"),

  /** {@code DLManagedTensorVersioned} of DLPack 1.0. */
  VERSIONED("dltensor_versioned");

  private final String capsule;

  DlpackForm(String capsule) {
    this.capsule = capsule;
  }

  /** What a Python capsule with its address has to be called. */
  public String capsule() {
    return capsule;
  }
}
