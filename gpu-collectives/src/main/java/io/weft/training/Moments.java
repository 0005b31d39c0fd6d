package io.weft.training;

import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** The running means of the gradients and of their squares for each parameter. */
final class Moments implements AutoCloseable {
  private final List<ParameterSpec> parameters;
  private final DataType type;
  private final List<Tensor> first = new ArrayList<>();
  private final List<Tensor> second = new ArrayList<>();

  /** Creates moments of zero. */
  Moments(List<ParameterSpec> parameters, DataType type) {
    this.parameters = parameters;
    this.type = type;
    for (ParameterSpec parameter : parameters) {
      first.add(Tensor.allocate(TensorType.of(type, parameter.count())));
      second.add(Tensor.allocate(TensorType.of(type, parameter.count())));
    }
  }

  DataType type() {
    return type;
  }

  TypedBuffer first(int parameter) {
    return first.get(parameter).buffer();
  }

  TypedBuffer second(int parameter) {
    return second.get(parameter).buffer();
  }

  void writeTo(StateOutput out) throws IOException {
    out.text(type.toString());
    out.number(parameters.size());
    for (int i = 0; i < parameters.size(); i++) {
      out.text(parameters.get(i).name());
      out.number(parameters.get(i).count());
      out.memory(first(i));
      out.memory(second(i));
    }
  }

  /** Reads what {@link #writeTo} wrote for the same parameters. */
  void readFrom(StateInput in) throws IOException {
    in.expect("type of the moments", type.toString());
    in.expect("number of parameters", parameters.size());
    for (int i = 0; i < parameters.size(); i++) {
      in.expect("name of parameter " + i, parameters.get(i).name());
      in.expect("size of " + parameters.get(i).name(), parameters.get(i).count());
      in.memory(first(i));
      in.memory(second(i));
    }
  }

  @Override
  public void close() {
    first.forEach(Tensor::close);
    second.forEach(Tensor::close);
  }
}
