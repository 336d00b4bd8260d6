// Exit codes of the programs, after sysexits.h, so that an operator's script can tell the causes apart.
#pragma once

namespace merope {

enum ExitCode : int {
  kExitOk = 0,
  kExitUsage = 64,        // the command line or a configuration value is wrong
  kExitData = 65,         // a weight file, a missing tensor, a broken checkpoint
  kExitNoInput = 66,      // a file or folder named by the operator is not there
  kExitUnavailable = 69,  // Redis or the server can not be reached
  kExitSoftware = 70,     // a fault of the program or of its device: start again
  kExitConfig = 78,       // a port is in use, or the environment does not fit
};

}  // namespace merope
