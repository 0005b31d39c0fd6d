package io.weft.shuffle.store;

/**
 * The key of a map output.
 *
 * @param shuffleId Spark's shuffle id
 * @param mapId Spark's task attempt id of the map task, so two attempts never share a key
 */
public record BlockKey(int shuffleId, long mapId) {
  @Override
  public String toString() {
    return "shuffle " + shuffleId + " map " + mapId;
  }
}
