package io.weft.examples.train;

import java.io.Serializable;
import java.util.Iterator;
import java.util.ServiceLoader;

/**
 * Makes models; found on the driver's class path as a {@link ServiceLoader} service, and sent to
 * the executors. Thread-safe.
 */
public interface ModelProvider extends Serializable {
  /** The library and its version, for reports. */
  String name();

  /** Does once per machine what takes long, such as unpacking native code. */
  void prepare();

  /**
   * A model with random parameters.
   *
   * @param seed the same parameters for the same seed
   */
  TrainingModel open(ModelShape shape, long seed);

  /**
   * The one on the class path.
   *
   * @throws IllegalStateException when there is none
   */
  static ModelProvider find() {
    ClassLoader loader = Thread.currentThread().getContextClassLoader();
    Iterator<ModelProvider> found = ServiceLoader.load(ModelProvider.class, loader).iterator();
    if (!found.hasNext()) {
      throw new IllegalStateException(
          "no library for models is on the class path; bin/weft train builds one, in"
              + " examples/training");
    }
    return found.next();
  }
}
