package io.weft.examples.train;

import java.io.Serializable;
import java.util.List;

/**
 * The shape of a classifier with fully connected layers.
 *
 * @param features number of features of a row
 * @param hidden units of the hidden layers, from the first to the last
 * @param classes number of classes
 */
public record ModelShape(int features, List<Integer> hidden, int classes) implements Serializable {
  public ModelShape {
    hidden = List.copyOf(hidden);
  }
}
