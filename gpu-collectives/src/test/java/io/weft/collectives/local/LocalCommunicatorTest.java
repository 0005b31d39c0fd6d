package io.weft.collectives.local;

import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.contract.CollectivesContract;
import io.weft.collectives.contract.FailureContract;
import io.weft.collectives.contract.HugeContract;
import io.weft.collectives.contract.PointToPointContract;
import io.weft.collectives.contract.RaggedContract;

class LocalCommunicatorTest
    implements CollectivesContract,
        RaggedContract,
        PointToPointContract,
        FailureContract,
        HugeContract {
  @Override
  public CommunicatorFactory factory() {
    return LocalCommunicator::create;
  }
}
