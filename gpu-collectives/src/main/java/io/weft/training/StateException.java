package io.weft.training;

import java.io.IOException;

/** Bytes that should hold a state do not: damaged, cut short, of something else, or too new. */
public class StateException extends IOException {
  private static final long serialVersionUID = 1L;

  /** Says what is wrong with the bytes. */
  public StateException(String message) {
    super(message);
  }
}
