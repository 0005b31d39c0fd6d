package io.weft.training;

import java.io.IOException;

/** Bytes that should hold a state do not: damaged, cut short, of something else, or too new. */
public class StateException extends IOException {
  private static final long serialVersionUID = 1L;

  public StateException(String message) {
    super(message);
  }
}
