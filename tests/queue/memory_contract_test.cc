#include "tests/queue/contract.h"

namespace merope::queue {

INSTANTIATE_TEST_SUITE_P(Memory, QueueContract, testing::Values(&make_memory_world));

}  // namespace merope::queue
