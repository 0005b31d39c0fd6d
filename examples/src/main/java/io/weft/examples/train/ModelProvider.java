package io.weft.examples.train;

import java.io.Serializable;
import java.util.Iterator;
import java.util.ServiceLoader;

/**
 * Creates models. The driver finds it on its class path as a {@link ServiceLoader} service and
 * sends it to the executors. Thread-safe.
 */
public interface ModelProvider extends Serializable {
  /** Returns the library and its version, for reports. */
  String name();

  /** Prepares a machine, for example by unpacking native code. This may take long. */
  void prepare();

  /**
   * Creates a model with random parameters.
   *
   * @param seed equal seeds give equal parameters
   */
  TrainingModel open(ModelShape shape, long seed);

  /**
   * Returns the provider on the class path.
   *
   * @throws IllegalStateException if there is none
   */
  static ModelProvider find() {
    ClassLoader loader = Thread.currentThread().getContextClassLoader();
    Iterator<ModelProvider> found = ServiceLoader.load(ModelProvider.class, loader).iterator();
    if (!found.hasNext()) {
      throw new IllegalStateException(
          "no model library is on the class path; bin/weft train builds one, in"
              + " examples/training");
    }
    return found.next();
  }
}
