package io.weft.examples.train;

import java.io.Serializable;
import java.util.List;

/**
 * A classifier of layers that are all connected.
 *
 * @param features of a row
 * @param hidden units of the layers in between, the first first
 * @param classes to tell apart
 */
public record ModelShape(int features, List<Integer> hidden, int classes) implements Serializable {
  public ModelShape {
    hidden = List.copyOf(hidden);
  }
}
